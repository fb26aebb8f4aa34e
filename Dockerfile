# ember in a small image: built in one stage, run as an unprivileged user in the next. The user is numeric, so that
# Kubernetes can verify (runAsNonRoot) that it is not root; a folder mounted at /data must belong to it.
#
# Docker's default seccomp profile is sufficient. It denies io_uring, which ember does not use: it waits for sockets with
# epoll. The server writes only to /data, so the image also runs with --read-only and --cap-drop ALL.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# The image is built without .git: `make docker-build` passes the commit.
ARG EMBER_COMMIT=
ENV EMBER_COMMIT=$EMBER_COMMIT
RUN cargo build --release --locked -p ember-server -p ember-cli
# Stripping the debug symbols reduces the programs to a fifth of their size.
RUN scripts/strip-binaries.sh target/release dist

FROM debian:bookworm-slim
RUN useradd --system --uid 10001 --user-group --no-create-home ember && mkdir /data && chown ember:ember /data
COPY --from=build /src/dist/ember-server /src/dist/ember-cli /usr/local/bin/
COPY --from=build /src/LICENSE /src/deploy/licenses/THIRD-PARTY.txt /src/deploy/licenses/ember.cdx.json /usr/share/doc/ember/
USER 10001:10001
WORKDIR /data
VOLUME /data
# Clients; and metrics, health and readiness with --metrics-port 9121 --metrics-bind 0.0.0.0.
EXPOSE 6379 9121
# Stopping drains connections and saves data: allow more than ten seconds for it (docker stop --time).
STOPSIGNAL SIGTERM
# The server listens on every interface of the container, whatever the arguments. Protected mode stays on: without a
# password, clients outside the container are refused.
ENV EMBER_BIND=0.0.0.0
ENTRYPOINT ["ember-server"]
CMD []
