"""Who held which device when: the timeline of a claim, and its pictures.

``history`` makes timelines of every change that a server made. ``present`` makes one of what the
objects and Events say now. ``text``, ``svg``, ``html`` and ``document`` print them.
"""
