# One recipe for every component:  docker build --build-arg COMPONENT=provider-kaito --build-arg FOLDER=providers/kaito .
# glibc, not musl: the regular expressions of CEL come as manylinux wheels only.
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
# An authority that the base image trusts is trusted here, too. The base image's pip has a list of its own.
ENV UV_SYSTEM_CERTS=1 PIP_CERT=/etc/ssl/certs/ca-certificates.crt
COPY requirements/ requirements/
# What builds is beside the environment, which has no pip and no build tool.
RUN python -m venv --without-pip /opt/build \
 && pip --python /opt/build/bin/python install --no-cache-dir --require-hashes -r requirements/image.txt
ARG COMPONENT
ARG FOLDER=${COMPONENT}
# --build-arg TRACES=1 adds OpenTelemetry, to export spans (docs/monitoring.md)
ARG TRACES
# Before the sources: a change of ours installs nothing of others again.
RUN python -m venv --without-pip /opt/kubefoundry \
 && /opt/build/bin/uv pip install --quiet --python /opt/kubefoundry --compile-bytecode --require-hashes \
      -r requirements/${COMPONENT}.txt ${TRACES:+-r requirements/traces.txt}
# The commit of the sources, for the metric kubefoundry_build_info: --build-arg COMMIT=$(git rev-parse --short=12 HEAD)
ARG COMMIT
ENV KUBEFOUNDRY_COMMIT=${COMMIT}
COPY sdk/ sdk/
COPY ${FOLDER}/ component/
# A component may have a package of its own below it.
RUN for package in ./sdk $(find ./component -maxdepth 2 -name pyproject.toml -printf '%h '); do \
      /opt/build/bin/uv build --quiet --wheel --no-build-isolation --python /opt/build --out-dir dist $package || exit 1; \
    done \
 && /opt/build/bin/uv pip install --quiet --python /opt/kubefoundry --compile-bytecode --no-deps dist/*.whl

FROM python:3.11-slim-bookworm
ARG COMPONENT
COPY --from=build /opt/kubefoundry /opt/kubefoundry
# Compiled at build time: the root file system is read-only in the pod.
ENV PATH=/opt/kubefoundry/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 COMPONENT=${COMPONENT}
USER 65532:65532
# Manifests state the command; this is for `docker run`.
CMD ["/bin/sh", "-c", "exec kubefoundry-${COMPONENT}"]
