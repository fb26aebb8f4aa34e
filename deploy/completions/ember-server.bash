_ember__server() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="ember__server"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        ember__server)
            opts="-h -v -c -p --help --version --config --check-config --host --bind --port --redis-version --tcp-backlog --unixsocket --unixsocketperm --unixsocketgroup --timeout --tcp-keepalive --maxclients --max-new-connections-per-cycle --max-new-tls-connections-per-cycle --protected-mode --requirepass --requirepass-file --aclfile --acl-pubsub-default --acllog-max-len --enable-debug-command --enable-protected-configs --tls-port --tls-cert-file --tls-key-file --tls-key-file-pass --tls-ca-cert-file --tls-ca-cert-dir --tls-auth-clients --tls-auth-clients-user --tls-protocols --tls-ciphers --tls-ciphersuites --tls-prefer-server-ciphers --tls-session-caching --tls-session-cache-size --tls-session-cache-timeout --tls-auto-reload-interval --shards --concurrent --long-call-elements --databases --hash-function --hz --active-expire-effort --max-memory --maxmemory --eviction-policy --maxmemory-policy --maxmemory-samples --lfu-log-factor --lfu-decay-time --lazyfree-lazy-eviction --lazyfree-lazy-expire --lazyfree-lazy-server-del --lazyfree-lazy-user-del --activedefrag --active-defrag-cycle-min --active-defrag-cycle-max --active-defrag-threshold-lower --active-defrag-threshold-upper --active-defrag-ignore-bytes --active-defrag-max-scan-fields --active-defrag-cycle-us --tiered-path --tiered-max-size --tiered-min-value --tiered-max-value --storage-io-threads --import-mode --lazyfree-lazy-user-flush --hash-max-ziplist-entries --hash-max-listpack-entries --hash-max-ziplist-value --hash-max-listpack-value --set-max-intset-entries --set-max-listpack-entries --set-max-listpack-value --zset-max-ziplist-entries --zset-max-listpack-entries --zset-max-ziplist-value --zset-max-listpack-value --list-max-ziplist-size --list-max-listpack-size --list-compress-depth --stream-node-max-bytes --stream-node-max-entries --hll-sparse-max-bytes --client-output-buffer-limit --client-query-buffer-limit --maxmemory-clients --proto-max-bulk-len --watch-max-per-client --watch-max-memory --watch-max-reply --lua-time-limit --busy-reply-threshold --script-memory-limit --commandlog-execution-slower-than --slowlog-log-slower-than --commandlog-slow-execution-max-len --slowlog-max-len --commandlog-request-larger-than --commandlog-large-request-max-len --commandlog-reply-larger-than --commandlog-large-reply-max-len --commandlog-key-larger-than --commandlog-large-key-max-len --hotkeys-sampling --latency-monitor-threshold --latency-tracking --latency-tracking-info-percentiles --metrics-port --metrics-bind --metrics-dashboard --http-watch-port --http-watch-bind --http-watch-origins --http-watch-max-streams --tracking-table-max-keys --notify-keyspace-events --loglevel --logfile --syslog-enabled --syslog-ident --syslog-facility --log-format --log-timestamp-format --availability-zone --data-dir --dir --pidfile --daemonize --supervised --shutdown-timeout --shutdown-on-sigint --shutdown-on-sigterm --oom-score-adj --oom-score-adj-values --set-proc-title --proc-title-template --server-cpulist --server_cpulist --bio-cpulist --bio_cpulist --aof-rewrite-cpulist --aof_rewrite_cpulist --bgsave-cpulist --bgsave_cpulist --appendonly --appendfsync --no-appendfsync-on-rewrite --appenddirname --appendfilename --aof-timestamp-enabled --aof-keep-seconds --history-keys --history-path --history-max-age --history-max-size --history-max-memory --history-max-value --aof-load-truncated --aof-use-rdb-preamble --auto-aof-rewrite-percentage --auto-aof-rewrite-min-size --aof-lag-limit --aof-wait-limit --dbfilename --rdbcompression --encryption-key-file --save --stop-writes-on-bgsave-error --rdb-version-check --rdb-skip-unknown-modules --rdb-target --store --path --fsync --slaveof --replicaof --primaryauth --masterauth --primaryuser --masteruser --bind-source-addr --slave-serve-stale-data --replica-serve-stale-data --slave-read-only --replica-read-only --replica-apply --slave-ignore-maxmemory --replica-ignore-maxmemory --slave-lazy-flush --replica-lazy-flush --replica-announced --replica-ignore-disk-write-errors --slave-priority --replica-priority --slave-announce-ip --replica-announce-ip --slave-announce-port --replica-announce-port --repl-diskless-sync --repl-diskless-sync-delay --repl-diskless-sync-max-replicas --repl-diskless-load --repl-disable-tcp-nodelay --repl-ping-slave-period --repl-ping-replica-period --repl-timeout --repl-backlog-size --repl-backlog-spill --repl-backlog-ttl --min-slaves-to-write --min-replicas-to-write --min-slaves-max-lag --min-replicas-max-lag --sync-replicas --sync-level --sync-timeout --rdb-del-sync-files --propagation-error-behavior --tls-replication --tls-client-cert-file --tls-client-key-file --tls-client-key-file-pass --replica-full-sync-buffer-limit --dual-channel-replication-enabled --repl-mptcp --cluster-enabled --cluster-config-file --cluster-node-timeout --cluster-auth-pass --cluster-auth-pass-file --cluster-unauthenticated --cluster-bootstrap --cluster-port --cluster-announce-ip --cluster-announce-port --cluster-announce-tls-port --cluster-announce-bus-port --cluster-announce-hostname --cluster-announce-human-nodename --cluster-preferred-endpoint-type --cluster-migration-barrier --cluster-allow-replica-migration --cluster-require-full-coverage --cluster-slave-validity-factor --cluster-replica-validity-factor --cluster-slave-no-failover --cluster-replica-no-failover --cluster-allow-reads-when-down --cluster-allow-pubsubshard-when-down --cluster-link-sendbuf-limit --tls-cluster --cluster-announce-client-ipv4 --cluster-announce-client-ipv6 --cluster-announce-client-port --cluster-announce-client-tls-port --cluster-blacklist-ttl --cluster-config-save-behavior --cluster-databases --cluster-manual-failover-timeout --cluster-slot-stats-enabled --cluster-slot-migration-log-max-len --slot-migration-max-failover-repl-bytes --cluster-compatibility-sample-ratio --always-show-logo --io-threads --io-threads-do-reads --disable-thp --jemalloc-bg-thread --dynamic-hz --activerehashing --aof-rewrite-incremental-fsync --rdb-save-incremental-fsync --rdbchecksum --sanitize-dump-payload --maxmemory-eviction-tenacity --crash-log-enabled --crash-memcheck-enabled --enable-module-command --ignore-warnings --locale-collate --socket-mark-id --tls-dh-params-file --prefetch-batch-max-size --extended-redis-compatibility --hash-seed --mptcp --rdma-port --rdma-bind --rdma-rx-size --rdma-completion-vector --hide-user-data-from-log --aof-disable-auto-gc --loading-process-events-interval-bytes --cluster-ping-interval --rdb-key-save-delay --key-load-delay --tiered-goal --use-exit-on-panic --watchdog-period"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --config)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                -c)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --check-config)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --bind)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --host)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -p)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --redis-version)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tcp-backlog)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --unixsocket)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --unixsocketperm)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --unixsocketgroup)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tcp-keepalive)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --maxclients)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-new-connections-per-cycle)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-new-tls-connections-per-cycle)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --protected-mode)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --requirepass)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --requirepass-file)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --aclfile)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --acl-pubsub-default)
                    COMPREPLY=($(compgen -W "allchannels resetchannels" -- "${cur}"))
                    return 0
                    ;;
                --acllog-max-len)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --enable-debug-command)
                    COMPREPLY=($(compgen -W "no yes local" -- "${cur}"))
                    return 0
                    ;;
                --enable-protected-configs)
                    COMPREPLY=($(compgen -W "no yes local" -- "${cur}"))
                    return 0
                    ;;
                --tls-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-cert-file)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --tls-key-file)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --tls-key-file-pass)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-ca-cert-file)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --tls-ca-cert-dir)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --tls-auth-clients)
                    COMPREPLY=($(compgen -W "no yes optional" -- "${cur}"))
                    return 0
                    ;;
                --tls-auth-clients-user)
                    COMPREPLY=($(compgen -W "CN URI off" -- "${cur}"))
                    return 0
                    ;;
                --tls-protocols)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-ciphers)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-ciphersuites)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-prefer-server-ciphers)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --tls-session-caching)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --tls-session-cache-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-session-cache-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-auto-reload-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shards)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --concurrent)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --long-call-elements)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --databases)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hash-function)
                    COMPREPLY=($(compgen -W "rapidhash siphash" -- "${cur}"))
                    return 0
                    ;;
                --hz)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --active-expire-effort)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --maxmemory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-memory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --maxmemory-policy)
                    COMPREPLY=($(compgen -W "volatile-lru volatile-lfu volatile-random volatile-ttl allkeys-lru allkeys-lfu allkeys-random noeviction allkeys-ghosts" -- "${cur}"))
                    return 0
                    ;;
                --eviction-policy)
                    COMPREPLY=($(compgen -W "volatile-lru volatile-lfu volatile-random volatile-ttl allkeys-lru allkeys-lfu allkeys-random noeviction allkeys-ghosts" -- "${cur}"))
                    return 0
                    ;;
                --maxmemory-samples)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --lfu-log-factor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --lfu-decay-time)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --lazyfree-lazy-eviction)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --lazyfree-lazy-expire)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --lazyfree-lazy-server-del)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --lazyfree-lazy-user-del)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --activedefrag)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --active-defrag-cycle-min)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --active-defrag-cycle-max)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --active-defrag-threshold-lower)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --active-defrag-threshold-upper)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --active-defrag-ignore-bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --active-defrag-max-scan-fields)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --active-defrag-cycle-us)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tiered-path)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --tiered-max-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tiered-min-value)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tiered-max-value)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --storage-io-threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --import-mode)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --lazyfree-lazy-user-flush)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --hash-max-listpack-entries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hash-max-ziplist-entries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hash-max-listpack-value)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hash-max-ziplist-value)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --set-max-intset-entries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --set-max-listpack-entries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --set-max-listpack-value)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --zset-max-listpack-entries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --zset-max-ziplist-entries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --zset-max-listpack-value)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --zset-max-ziplist-value)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --list-max-listpack-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --list-max-ziplist-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --list-compress-depth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stream-node-max-bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stream-node-max-entries)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hll-sparse-max-bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --client-output-buffer-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --client-query-buffer-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --maxmemory-clients)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --proto-max-bulk-len)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --watch-max-per-client)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --watch-max-memory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --watch-max-reply)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --busy-reply-threshold)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --lua-time-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --script-memory-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slowlog-log-slower-than)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --commandlog-execution-slower-than)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slowlog-max-len)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --commandlog-slow-execution-max-len)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --commandlog-request-larger-than)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --commandlog-large-request-max-len)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --commandlog-reply-larger-than)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --commandlog-large-reply-max-len)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --commandlog-key-larger-than)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --commandlog-large-key-max-len)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hotkeys-sampling)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --latency-monitor-threshold)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --latency-tracking)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --latency-tracking-info-percentiles)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --metrics-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --metrics-bind)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --metrics-dashboard)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --http-watch-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --http-watch-bind)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --http-watch-origins)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --http-watch-max-streams)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tracking-table-max-keys)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --notify-keyspace-events)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --loglevel)
                    COMPREPLY=($(compgen -W "debug verbose notice warning nothing" -- "${cur}"))
                    return 0
                    ;;
                --logfile)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --syslog-enabled)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --syslog-ident)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --syslog-facility)
                    COMPREPLY=($(compgen -W "user local0 local1 local2 local3 local4 local5 local6 local7" -- "${cur}"))
                    return 0
                    ;;
                --log-format)
                    COMPREPLY=($(compgen -W "legacy logfmt json" -- "${cur}"))
                    return 0
                    ;;
                --log-timestamp-format)
                    COMPREPLY=($(compgen -W "legacy iso8601 milliseconds" -- "${cur}"))
                    return 0
                    ;;
                --availability-zone)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dir)
                    COMPREPLY=()
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o plusdirs
                    fi
                    return 0
                    ;;
                --data-dir)
                    COMPREPLY=()
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o plusdirs
                    fi
                    return 0
                    ;;
                --pidfile)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --daemonize)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --supervised)
                    COMPREPLY=($(compgen -W "upstart systemd auto no" -- "${cur}"))
                    return 0
                    ;;
                --shutdown-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shutdown-on-sigint)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shutdown-on-sigterm)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --oom-score-adj)
                    COMPREPLY=($(compgen -W "no yes relative absolute" -- "${cur}"))
                    return 0
                    ;;
                --oom-score-adj-values)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --set-proc-title)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --proc-title-template)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server_cpulist)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --server-cpulist)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bio_cpulist)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bio-cpulist)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --aof_rewrite_cpulist)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --aof-rewrite-cpulist)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bgsave_cpulist)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bgsave-cpulist)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --appendonly)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --appendfsync)
                    COMPREPLY=($(compgen -W "always everysec no" -- "${cur}"))
                    return 0
                    ;;
                --no-appendfsync-on-rewrite)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --appenddirname)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --appendfilename)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --aof-timestamp-enabled)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --aof-keep-seconds)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history-keys)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history-path)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --history-max-age)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history-max-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history-max-memory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --history-max-value)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --aof-load-truncated)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --aof-use-rdb-preamble)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --auto-aof-rewrite-percentage)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --auto-aof-rewrite-min-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --aof-lag-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --aof-wait-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dbfilename)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rdbcompression)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --encryption-key-file)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --save)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --stop-writes-on-bgsave-error)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --rdb-version-check)
                    COMPREPLY=($(compgen -W "strict relaxed" -- "${cur}"))
                    return 0
                    ;;
                --rdb-skip-unknown-modules)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --rdb-target)
                    COMPREPLY=($(compgen -W "redis redis-7.2 redis-8 valkey-9" -- "${cur}"))
                    return 0
                    ;;
                --store)
                    COMPREPLY=($(compgen -W "none map btree redb lmdb fjall bolt bbolt leveldb kv" -- "${cur}"))
                    return 0
                    ;;
                --path)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --fsync)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --replicaof)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slaveof)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --masterauth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --primaryauth)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --masteruser)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --primaryuser)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --bind-source-addr)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --replica-serve-stale-data)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --slave-serve-stale-data)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --replica-read-only)
                    COMPREPLY=($(compgen -W "yes" -- "${cur}"))
                    return 0
                    ;;
                --slave-read-only)
                    COMPREPLY=($(compgen -W "yes" -- "${cur}"))
                    return 0
                    ;;
                --replica-apply)
                    COMPREPLY=($(compgen -W "parallel serial" -- "${cur}"))
                    return 0
                    ;;
                --replica-ignore-maxmemory)
                    COMPREPLY=($(compgen -W "yes" -- "${cur}"))
                    return 0
                    ;;
                --slave-ignore-maxmemory)
                    COMPREPLY=($(compgen -W "yes" -- "${cur}"))
                    return 0
                    ;;
                --replica-lazy-flush)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --slave-lazy-flush)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --replica-announced)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --replica-ignore-disk-write-errors)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --replica-priority)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slave-priority)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --replica-announce-ip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slave-announce-ip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --replica-announce-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slave-announce-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --repl-diskless-sync)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --repl-diskless-sync-delay)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --repl-diskless-sync-max-replicas)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --repl-diskless-load)
                    COMPREPLY=($(compgen -W "disabled on-empty-db flush-before-load" -- "${cur}"))
                    return 0
                    ;;
                --repl-disable-tcp-nodelay)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --repl-ping-replica-period)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --repl-ping-slave-period)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --repl-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --repl-backlog-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --repl-backlog-spill)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --repl-backlog-ttl)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-replicas-to-write)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-slaves-to-write)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-replicas-max-lag)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --min-slaves-max-lag)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sync-replicas)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sync-level)
                    COMPREPLY=($(compgen -W "memory disk" -- "${cur}"))
                    return 0
                    ;;
                --sync-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rdb-del-sync-files)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --propagation-error-behavior)
                    COMPREPLY=($(compgen -W "ignore panic panic-on-replicas" -- "${cur}"))
                    return 0
                    ;;
                --tls-replication)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --tls-client-cert-file)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --tls-client-key-file)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --tls-client-key-file-pass)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --replica-full-sync-buffer-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --dual-channel-replication-enabled)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --repl-mptcp)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --cluster-enabled)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --cluster-config-file)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --cluster-node-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-auth-pass)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-auth-pass-file)
                    local oldifs
                    if [ -n "${IFS+x}" ]; then
                        oldifs="$IFS"
                    fi
                    IFS=$'\n'
                    COMPREPLY=($(compgen -f "${cur}"))
                    if [ -n "${oldifs+x}" ]; then
                        IFS="$oldifs"
                    fi
                    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
                        compopt -o filenames
                    fi
                    return 0
                    ;;
                --cluster-unauthenticated)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --cluster-bootstrap)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --cluster-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-announce-ip)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-announce-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-announce-tls-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-announce-bus-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-announce-hostname)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-announce-human-nodename)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-preferred-endpoint-type)
                    COMPREPLY=($(compgen -W "ip hostname unknown-endpoint" -- "${cur}"))
                    return 0
                    ;;
                --cluster-migration-barrier)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-allow-replica-migration)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --cluster-require-full-coverage)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --cluster-replica-validity-factor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-slave-validity-factor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-replica-no-failover)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --cluster-slave-no-failover)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --cluster-allow-reads-when-down)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --cluster-allow-pubsubshard-when-down)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --cluster-link-sendbuf-limit)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-cluster)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --cluster-announce-client-ipv4)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-announce-client-ipv6)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-announce-client-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-announce-client-tls-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-blacklist-ttl)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-config-save-behavior)
                    COMPREPLY=($(compgen -W "sync best-effort" -- "${cur}"))
                    return 0
                    ;;
                --cluster-databases)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-manual-failover-timeout)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-slot-stats-enabled)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --cluster-slot-migration-log-max-len)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --slot-migration-max-failover-repl-bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-compatibility-sample-ratio)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --always-show-logo)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --io-threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --io-threads-do-reads)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --disable-thp)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --jemalloc-bg-thread)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --dynamic-hz)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --activerehashing)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --aof-rewrite-incremental-fsync)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --rdb-save-incremental-fsync)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --rdbchecksum)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --sanitize-dump-payload)
                    COMPREPLY=($(compgen -W "no yes clients" -- "${cur}"))
                    return 0
                    ;;
                --maxmemory-eviction-tenacity)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --crash-log-enabled)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --crash-memcheck-enabled)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --enable-module-command)
                    COMPREPLY=($(compgen -W "no yes local" -- "${cur}"))
                    return 0
                    ;;
                --ignore-warnings)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --locale-collate)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --socket-mark-id)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tls-dh-params-file)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --prefetch-batch-max-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --extended-redis-compatibility)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --hash-seed)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --mptcp)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --rdma-port)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rdma-bind)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rdma-rx-size)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rdma-completion-vector)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --hide-user-data-from-log)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --aof-disable-auto-gc)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --loading-process-events-interval-bytes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cluster-ping-interval)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rdb-key-save-delay)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --key-load-delay)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tiered-goal)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --use-exit-on-panic)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --watchdog-period)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _ember__server -o nosort -o bashdefault -o default ember-server
else
    complete -F _ember__server -o bashdefault -o default ember-server
fi
