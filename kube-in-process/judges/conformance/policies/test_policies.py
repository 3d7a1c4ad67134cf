"""Policies are taken or refused, and change pods, as on a real server."""

from __future__ import annotations

from kube_in_process_tests.servers import server

from judges.conformance.policies.cases import BINDINGS, PODS, POLICIES, cases, recorded, shown


async def test_policies_and_their_pods_are_answered_as_by_a_real_server() -> None:
    asked, answers = server(), dict[str, list[str]]()
    for case in cases():
        policy = await asked.send("POST", POLICIES, case.policy)
        answers[case.case] = [shown(policy.status, policy.body)]
        if policy.status == 201:
            await asked.send("POST", BINDINGS, case.binding)
            pod = await asked.send("POST", PODS, case.pod)
            answers[case.case].append(shown(pod.status, pod.body))
    assert answers == recorded("1.36")
