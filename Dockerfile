# The image of claimctl's controller.
#
#   docker build -t registry.example.com/claimctl:0.1.0 .
#
# A tag of a base image can change. For a build that can be repeated, name the base image by its digest, which the
# registry tells (docker buildx imagetools inspect python:3.13-slim), and hand in the time of the commit:
#
#   docker build --build-arg PYTHON=python:3.13-slim@sha256:... \
#     --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) --build-arg REVISION=$(git rev-parse HEAD) \
#     -t registry.example.com/claimctl:0.1.0 .

ARG PYTHON=python:3.13-slim

FROM ${PYTHON} AS build
ARG SOURCE_DATE_EPOCH=1577836800
ENV SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH} PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_COMPILE=1
WORKDIR /src
# Only what the controller and the hooks need: the official client, of 126 MB, is for kubeconfigs and the demo.
RUN python -m venv --without-pip /opt/claimctl
COPY requirements-image.lock requirements-build.lock ./
RUN pip --python /opt/claimctl/bin/python install --require-hashes --no-deps -r requirements-image.lock
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --require-hashes --no-deps -r requirements-build.lock
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY claimctl claimctl
COPY claimctl_demo claimctl_demo
COPY crds crds
COPY rbac rbac
COPY deploy deploy
COPY sbom sbom
COPY man man
RUN /opt/build/bin/python -m hatchling build --target wheel --directory /dist \
    && pip --python /opt/claimctl/bin/python install --no-deps /dist/*.whl \
    && mkdir -p /opt/claimctl/share/sbom \
    && cp sbom/claimctl-image.cdx.json /opt/claimctl/share/sbom/
# Bytecode without times: the root file system is read-only, and the start is quicker with it.
RUN /opt/claimctl/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/claimctl/lib

FROM ${PYTHON}
ARG PYTHON
ARG REVISION=unknown
LABEL org.opencontainers.image.title="claimctl" \
      org.opencontainers.image.description="Keeps DRA ResourceClaims reserved for workloads" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${PYTHON}"
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PATH=/opt/claimctl/bin:$PATH
COPY --from=build /opt/claimctl /opt/claimctl
USER 65532:65532
ENTRYPOINT ["claimctl"]
