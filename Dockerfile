# One recipe for every component:  docker build --build-arg COMPONENT=provider-kaito --build-arg FOLDER=providers/kaito .
# glibc, not musl: the regular expressions of CEL come as manylinux wheels only.
FROM python:3.11-slim-bookworm AS build
ARG COMPONENT
ARG FOLDER=${COMPONENT}
WORKDIR /src
COPY requirements/ requirements/
COPY sdk/ sdk/
COPY ${FOLDER}/ component/
# A component may have a package of its own below it.
RUN python -m venv /opt/kubefoundry \
 && /opt/kubefoundry/bin/pip install --no-cache-dir --require-hashes -r requirements/build.txt -r requirements/${COMPONENT}.txt \
 && /opt/kubefoundry/bin/pip install --no-cache-dir --no-deps --no-build-isolation ./sdk \
      $(find ./component -maxdepth 2 -name pyproject.toml -printf '%h ')

FROM python:3.11-slim-bookworm
ARG COMPONENT
COPY --from=build /opt/kubefoundry /opt/kubefoundry
# Compiled at build time: the root file system is read-only in the pod.
ENV PATH=/opt/kubefoundry/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 COMPONENT=${COMPONENT}
USER 65532:65532
# Manifests state the command; this is for `docker run`.
CMD ["/bin/sh", "-c", "exec kubefoundry-${COMPONENT}"]
