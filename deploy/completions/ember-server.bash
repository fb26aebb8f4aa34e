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
            opts="-h -v -c -p --help --version --config --host --bind --port --tcp-backlog --unixsocket --unixsocketperm --timeout --tcp-keepalive --maxclients --protected-mode --requirepass --requirepass-file --aclfile --acl-pubsub-default --acllog-max-len --enable-debug-command --tls-port --tls-cert-file --tls-key-file --tls-ca-cert-file --tls-ca-cert-dir --tls-auth-clients --tls-protocols --tls-ciphers --tls-ciphersuites --tls-prefer-server-ciphers --tls-session-caching --tls-session-cache-size --tls-session-cache-timeout --shards --concurrent --databases --hash-function --hz --max-memory --maxmemory --eviction-policy --maxmemory-policy --maxmemory-samples --lfu-log-factor --lfu-decay-time --lazyfree-lazy-server-del --lazyfree-lazy-user-del --lazyfree-lazy-user-flush --hash-max-ziplist-entries --hash-max-listpack-entries --hash-max-ziplist-value --hash-max-listpack-value --set-max-intset-entries --set-max-listpack-entries --set-max-listpack-value --zset-max-ziplist-entries --zset-max-listpack-entries --zset-max-ziplist-value --zset-max-listpack-value --list-max-ziplist-size --list-max-listpack-size --list-compress-depth --stream-node-max-bytes --stream-node-max-entries --hll-sparse-max-bytes --client-output-buffer-limit --client-query-buffer-limit --maxmemory-clients --proto-max-bulk-len --sanitize-dump-payload --lua-time-limit --busy-reply-threshold --script-memory-limit --commandlog-execution-slower-than --slowlog-log-slower-than --commandlog-slow-execution-max-len --slowlog-max-len --commandlog-request-larger-than --commandlog-large-request-max-len --commandlog-reply-larger-than --commandlog-large-reply-max-len --commandlog-key-larger-than --commandlog-large-key-max-len --hotkeys-sampling --latency-monitor-threshold --latency-tracking --latency-tracking-info-percentiles --metrics-port --metrics-bind --metrics-dashboard --tracking-table-max-keys --notify-keyspace-events --loglevel --logfile --data-dir --dir --pidfile --daemonize --supervised --shutdown-timeout --appendonly --appendfsync --appenddirname --appendfilename --aof-timestamp-enabled --aof-load-truncated --aof-use-rdb-preamble --auto-aof-rewrite-percentage --auto-aof-rewrite-min-size --aof-lag-limit --aof-wait-limit --dbfilename --rdbcompression --rdbchecksum --encryption-key-file --save --stop-writes-on-bgsave-error --slaveof --replicaof --cluster-enabled"
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
                --shards)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --concurrent)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
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
                --maxmemory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --max-memory)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --maxmemory-policy)
                    COMPREPLY=($(compgen -W "volatile-lru volatile-lfu volatile-random volatile-ttl allkeys-lru allkeys-lfu allkeys-random noeviction" -- "${cur}"))
                    return 0
                    ;;
                --eviction-policy)
                    COMPREPLY=($(compgen -W "volatile-lru volatile-lfu volatile-random volatile-ttl allkeys-lru allkeys-lfu allkeys-random noeviction" -- "${cur}"))
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
                --lazyfree-lazy-server-del)
                    COMPREPLY=($(compgen -W "no" -- "${cur}"))
                    return 0
                    ;;
                --lazyfree-lazy-user-del)
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
                --sanitize-dump-payload)
                    COMPREPLY=($(compgen -W "yes" -- "${cur}"))
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
                    COMPREPLY=($(compgen -W "no" -- "${cur}"))
                    return 0
                    ;;
                --supervised)
                    COMPREPLY=($(compgen -W "systemd auto no" -- "${cur}"))
                    return 0
                    ;;
                --shutdown-timeout)
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
                --aof-load-truncated)
                    COMPREPLY=($(compgen -W "yes no" -- "${cur}"))
                    return 0
                    ;;
                --aof-use-rdb-preamble)
                    COMPREPLY=($(compgen -W "yes" -- "${cur}"))
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
                --rdbchecksum)
                    COMPREPLY=($(compgen -W "yes" -- "${cur}"))
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
                --replicaof)
                    COMPREPLY=($(compgen -W """ no one" -- "${cur}"))
                    return 0
                    ;;
                --slaveof)
                    COMPREPLY=($(compgen -W """ no one" -- "${cur}"))
                    return 0
                    ;;
                --cluster-enabled)
                    COMPREPLY=($(compgen -W "no" -- "${cur}"))
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
