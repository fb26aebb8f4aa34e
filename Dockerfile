# ember in a small image: built in one stage, run as an unprivileged user in the next.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p ember-server

FROM debian:bookworm-slim
RUN useradd --system --no-create-home ember && mkdir /data && chown ember /data
COPY --from=build /src/target/release/ember-server /usr/local/bin/ember-server
USER ember
WORKDIR /data
VOLUME /data
EXPOSE 6379
# A container is reached from outside only through published ports, so it listens on every interface of its own.
ENTRYPOINT ["ember-server"]
CMD ["--bind", "0.0.0.0", "--protected-mode", "no"]
