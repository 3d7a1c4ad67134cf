# docker build -t claimctl:0.1.0 .

FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /opt/claimctl
COPY requirements.lock .
RUN /opt/claimctl/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements.lock
RUN python -m venv /opt/build && /opt/build/bin/pip install --no-cache-dir "hatchling>=1.27,<2"
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY claimctl claimctl
COPY crds crds
COPY rbac rbac
COPY deploy deploy
RUN /opt/build/bin/python -m hatchling build --target wheel --directory /dist \
    && /opt/claimctl/bin/pip install --no-cache-dir --no-deps /dist/*.whl

FROM python:3.13-slim
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PATH=/opt/claimctl/bin:$PATH
COPY --from=build /opt/claimctl /opt/claimctl
USER 65532:65532
ENTRYPOINT ["claimctl"]
