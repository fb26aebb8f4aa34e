# ember in a small image: built in one stage, run as an unprivileged user in the next. The user is a number, so that
# Kubernetes can see (runAsNonRoot) that it is not root; a folder mounted at /data must belong to it.
#
# Docker's own seccomp profile is all it needs. That profile denies io_uring, which ember does not use: it waits for
# sockets with epoll. Nothing is written but in /data, so the image also runs with --read-only and --cap-drop ALL.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# The image is built without .git: `make docker-build` says which commit it is of.
ARG EMBER_COMMIT=
ENV EMBER_COMMIT=$EMBER_COMMIT
RUN cargo build --release --locked -p ember-server -p ember-cli
# Without debug symbols they are a fifth as large.
RUN scripts/strip-binaries.sh target/release dist

FROM debian:bookworm-slim
RUN useradd --system --uid 10001 --user-group --no-create-home ember && mkdir /data && chown ember:ember /data
COPY --from=build /src/dist/ember-server /src/dist/ember-cli /usr/local/bin/
USER 10001:10001
WORKDIR /data
VOLUME /data
# Clients; and metrics, health and readiness for those who add --metrics-port 9121 --metrics-bind 0.0.0.0.
EXPOSE 6379 9121
# Connections are drained and data is saved: give it more than ten seconds to stop (docker stop --time).
STOPSIGNAL SIGTERM
# It listens on every interface of its own, whatever the arguments. Protected mode stays: without a password nobody outside
# the container is served.
ENV EMBER_BIND=0.0.0.0
ENTRYPOINT ["ember-server"]
CMD []
