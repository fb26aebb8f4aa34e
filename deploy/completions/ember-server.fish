complete -c ember-server -s c -l config -d 'The same as FILE' -r -F
complete -c ember-server -l check-config -d 'Checks the configuration, prints its errors, and exits' -r -F
complete -c ember-server -l bind -l host -d 'The addresses to listen on: IP addresses, host names, * (all IPv4) or ::* (all IPv6). With a - before an address, it is no error if the machine does not have this address. Without any address there is no TCP listener. (default: 127.0.0.1 -::1) Also --host.' -r
complete -c ember-server -s p -l port -d 'The TCP port to listen on; 0 for no TCP listener. (default: 6379)' -r
complete -c ember-server -l redis-version -d 'The version of Redis that INFO, HELLO, LOLWUT, redis.REDIS_VERSION and metrics report. Nothing else depends on it. Some client libraries use a feature only if the reported version has it, even though ember supports it. (default: 7.2.4)' -r
complete -c ember-server -l tcp-backlog -d 'The maximum number of connections that wait to be accepted; the kernel\'s somaxconn limits it further. (default: 511)' -r
complete -c ember-server -l unixsocket -d 'The path of a Unix socket to listen on; empty for none. (default: empty)' -r -F
complete -c ember-server -l unixsocketperm -d 'The permissions of the Unix socket; 0 leaves them to the umask. (default: 0)' -r
complete -c ember-server -l unixsocketgroup -d 'The group of the Unix socket: a name in /etc/group or a number; empty for the group of the process. (default: empty)' -r
complete -c ember-server -l timeout -d 'Seconds after which an idle connection is closed; 0 for never. (default: 0)' -r
complete -c ember-server -l tcp-keepalive -d 'Seconds between TCP keep-alive probes on an idle connection; 0 for none. (default: 300)' -r
complete -c ember-server -l maxclients -d 'The maximum number of connected clients. (default: 10000)' -r
complete -c ember-server -l max-new-connections-per-cycle -d 'The maximum number of connections accepted in one turn of the event loop, before existing ones are served again. (default: 10)' -r
complete -c ember-server -l max-new-tls-connections-per-cycle -d 'The same for connections with TLS: each handshake takes the time of many commands. (default: 1)' -r
complete -c ember-server -l protected-mode -d 'Whether only clients on this machine are served while there is no password. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l requirepass -d 'The password of the default user; empty for none. On the command line every user of the machine can read it: prefer requirepass-file. (default: empty)' -r
complete -c ember-server -l requirepass-file -d 'A file whose first line is the password, read once at startup; empty for none. The later of requirepass and this parameter applies. (default: empty)' -r -F
complete -c ember-server -l aclfile -d 'A file with users, read at startup and by ACL LOAD, written by ACL SAVE; empty for none. Users are defined there or in user lines of the configuration file, not in both. (default: empty)' -r -F
complete -c ember-server -l acl-pubsub-default -d 'The channels of publish and subscribe that new users may use. (default: resetchannels)' -r -f -a "allchannels\t''
resetchannels\t''"
complete -c ember-server -l acllog-max-len -d 'The maximum number of denials in ACL LOG. (default: 128)' -r
complete -c ember-server -l enable-debug-command -d 'Which clients may use DEBUG: none, all, or those on this machine. (default: no)' -r -f -a "no\t''
yes\t''
local\t''"
complete -c ember-server -l enable-protected-configs -d 'Which clients may change dir and dbfilename by CONFIG SET: none, all, or those on this machine. (default: no)' -r -f -a "no\t''
yes\t''
local\t''"
complete -c ember-server -l tls-port -d 'The TCP port for connections with TLS, on the addresses of bind; 0 for none. With port 0 only TLS is accepted. (default: 0)' -r
complete -c ember-server -l tls-cert-file -d 'The server\'s certificate and its chain, in PEM format. Each CONFIG SET of a TLS parameter, even to the same value, reads all files again, for new connections. (default: empty)' -r -F
complete -c ember-server -l tls-key-file -d 'The private key of that certificate, in PEM format. (default: empty)' -r -F
complete -c ember-server -l tls-key-file-pass -d 'The password of that key, if the key is encrypted. The supported encryption is PBES2 with AES-CBC, which OpenSSL uses. (default: empty)' -r
complete -c ember-server -l tls-ca-cert-file -d 'The certificates of the authorities that may issue client certificates, in PEM format. (default: empty)' -r -F
complete -c ember-server -l tls-ca-cert-dir -d 'A directory of files with more such certificates. (default: empty)' -r -F
complete -c ember-server -l tls-auth-clients -d 'Whether clients must present a certificate (yes), may present one (optional), or are not asked for one (no). (default: yes)' -r -f -a "no\t''
yes\t''
optional\t''"
complete -c ember-server -l tls-auth-clients-user -d 'The user of a client with an accepted certificate: the user named by its common name (CN), or by the first of its alternative names that is a URI and the name of a user (URI). If there is no such user, or it is off, the client logs in like others; with off all clients do. (default: off)' -r -f -a "CN\t''
URI\t''
off\t''"
complete -c ember-server -l tls-protocols -d 'The supported versions of TLS; empty for both. (default: empty)' -r
complete -c ember-server -l tls-ciphers -d 'The cipher suites of TLS 1.2, the preferred ones first; empty for all. (default: empty)' -r
complete -c ember-server -l tls-ciphersuites -d 'The cipher suites of TLS 1.3, the preferred ones first; empty for all. (default: empty)' -r
complete -c ember-server -l tls-prefer-server-ciphers -d 'Whether the server\'s order of cipher suites takes precedence over the client\'s. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l tls-session-caching -d 'Whether clients may resume a session with a shorter handshake. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l tls-session-cache-size -d 'The number of sessions in that cache. (default: 20480)' -r
complete -c ember-server -l tls-session-cache-timeout -d 'The seconds for which a session is cached. (default: 300)' -r
complete -c ember-server -l tls-auto-reload-interval -d 'The interval in seconds at which the TLS files are checked, and read again if they have changed; 0 for never. (default: 0)' -r
complete -c ember-server -l shards -d 'The number of worker threads that serve clients; 0 for one per core. (default: 0)' -r
complete -c ember-server -l concurrent -d 'Whether the worker that reads a command also runs it (yes), or forwards it to the worker that owns the key (no). (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l long-call-elements -d 'A command that reads or changes more elements than this runs on a separate thread while its worker serves other clients; 0 for never. (default: 16384)' -r
complete -c ember-server -l databases -d 'The number of databases. (default: 16)' -r
complete -c ember-server -l hash-function -d 'The hash function of keys, members and fields. siphash is slower and protects against clients that choose colliding keys. (default: rapidhash)' -r -f -a "rapidhash\t''
siphash\t''"
complete -c ember-server -l hz -d 'How many times per second background work runs: expiry of keys, idle connections, statistics. (default: 10)' -r
complete -c ember-server -l active-expire-effort -d 'The effort of workers to remove expired keys: in each turn of its loop a worker checks this many thousand keys, which takes about 0.1 ms per thousand. (default: 1)' -r
complete -c ember-server -l maxmemory -l max-memory -d 'The memory limit of the data and of clients\' buffers, above which keys are evicted or writes refused; 0 for no limit. (default: 0) Also --max-memory.' -r
complete -c ember-server -l maxmemory-policy -l eviction-policy -d 'Which keys are evicted at maxmemory. (default: noeviction) Also --eviction-policy.' -r -f -a "volatile-lru\t''
volatile-lfu\t''
volatile-random\t''
volatile-ttl\t''
allkeys-lru\t''
allkeys-lfu\t''
allkeys-random\t''
noeviction\t''
allkeys-ghosts\t''"
complete -c ember-server -l maxmemory-samples -d 'The number of keys that are sampled to choose one to evict. (default: 5)' -r
complete -c ember-server -l lfu-log-factor -d 'How much the access counter of the LFU policies slows down as it grows. (default: 10)' -r
complete -c ember-server -l lfu-decay-time -d 'Minutes after which the access counter of the LFU policies is decremented; 0 for never. (default: 1)' -r
complete -c ember-server -l lazyfree-lazy-eviction -d 'Whether evictions are sent to replicas and the append-only file as UNLINK instead of DEL. This server always frees large values in the background. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l lazyfree-lazy-expire -d 'Whether expirations are sent to replicas and the append-only file as UNLINK instead of DEL. This server always frees large values in the background. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l lazyfree-lazy-server-del -d 'Whether replicas and the append-only file receive UNLINK instead of DEL for keys that SPOP has emptied or RESTORE has found to be expired. This server always frees large values in the background. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l lazyfree-lazy-user-del -d 'Whether DEL frees in the background, as UNLINK does. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l activedefrag -d 'Whether a thread defragments memory while too much of it is unused between allocations. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l active-defrag-cycle-min -d 'The minimum effort of activedefrag, in per cent of a processor: at active-defrag-threshold-lower. (default: 1)' -r
complete -c ember-server -l active-defrag-cycle-max -d 'The maximum effort of activedefrag, in per cent of a processor: from active-defrag-threshold-upper on. (default: 25)' -r
complete -c ember-server -l active-defrag-threshold-lower -d 'activedefrag starts when the memory in use exceeds the allocated memory by this percentage; above maxmemory by half of it. (default: 10)' -r
complete -c ember-server -l active-defrag-threshold-upper -d 'The percentage from which activedefrag uses its maximum effort. (default: 100)' -r
complete -c ember-server -l active-defrag-ignore-bytes -d 'activedefrag does nothing while less memory than this is unused between allocations, unless the memory in use is above maxmemory. (default: 100mb)' -r
complete -c ember-server -l active-defrag-max-scan-fields -d 'activedefrag scans values with more elements than this in parts, others whole. (default: 1000)' -r
complete -c ember-server -l active-defrag-cycle-us -d 'The microseconds for which activedefrag works before it pauses; it does at least one short step. (default: 500)' -r
complete -c ember-server -l tiered-path -d 'A directory, used by this server only, for values that exceed maxmemory, which must be set; empty for none. It is emptied at startup. (default: empty)' -r -F
complete -c ember-server -l tiered-max-size -d 'The size limit of the files in tiered-path; 0 for nine tenths of the free space on their disk. (default: 0)' -r
complete -c ember-server -l tiered-min-value -d 'The value of a key stays in memory if key and value together take no more memory than this. (default: 64)' -r
complete -c ember-server -l tiered-max-value -d 'The value of a key stays in memory if key and value together take more memory than this. (default: 64mb)' -r
complete -c ember-server -l storage-io-threads -d 'The number of threads that read values from disk; 0 for two per processor, but at least 4 and at most 16. (default: 0)' -r
complete -c ember-server -l import-mode -d 'Whether this server is importing data from another one, which decides when keys expire: this server expires and evicts no keys; see CLIENT IMPORT-SOURCE. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l lazyfree-lazy-user-flush -d 'Whether FLUSHALL and FLUSHDB free in the background if called with neither SYNC nor ASYNC. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l hash-max-listpack-entries -l hash-max-ziplist-entries -d 'The maximum number of fields of a hash in one packed buffer. (default: 512) Also --hash-max-ziplist-entries.' -r
complete -c ember-server -l hash-max-listpack-value -l hash-max-ziplist-value -d 'The maximum length of a field or value, in bytes, of a hash in one packed buffer. (default: 64) Also --hash-max-ziplist-value.' -r
complete -c ember-server -l set-max-intset-entries -d 'The maximum number of members of a set that is stored as an array of integers. (default: 512)' -r
complete -c ember-server -l set-max-listpack-entries -d 'The maximum number of members of a set in one packed buffer. (default: 128)' -r
complete -c ember-server -l set-max-listpack-value -d 'The maximum length of a member, in bytes, of a set in one packed buffer. (default: 64)' -r
complete -c ember-server -l zset-max-listpack-entries -l zset-max-ziplist-entries -d 'The maximum number of members of a sorted set in one packed buffer. (default: 128) Also --zset-max-ziplist-entries.' -r
complete -c ember-server -l zset-max-listpack-value -l zset-max-ziplist-value -d 'The maximum length of a member, in bytes, of a sorted set in one packed buffer. (default: 64) Also --zset-max-ziplist-value.' -r
complete -c ember-server -l list-max-listpack-size -l list-max-ziplist-size -d 'The maximum size of a node of a list: a number of elements, or with -1 to -5, 4, 8, 16, 32 or 64 kb. (default: -2) Also --list-max-ziplist-size.' -r
complete -c ember-server -l list-compress-depth -d 'The number of nodes at each end of a list that are not compressed; 0 to compress none. It applies to nodes that are created or changed from then on. (default: 0)' -r
complete -c ember-server -l stream-node-max-bytes -d 'The maximum size of a node of a stream in bytes; 0 for no limit. (default: 4096)' -r
complete -c ember-server -l stream-node-max-entries -d 'The maximum number of entries in a node of a stream; 0 for no limit. (default: 100)' -r
complete -c ember-server -l hll-sparse-max-bytes -d 'The maximum number of bytes of a HyperLogLog in sparse form. (default: 3000)' -r
complete -c ember-server -l client-output-buffer-limit -d 'When a client that does not read its replies is disconnected: at once above hard bytes, or after seconds above soft bytes; 0 for never. The classes are normal, replica (or slave) and pubsub; a class that is not named keeps its limit. The output of MONITOR and client-side caching counts separately, against pubsub. (default: normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60)' -r
complete -c ember-server -l client-query-buffer-limit -d 'The size of a client\'s unprocessed input above which the client is disconnected. It includes commands queued since MULTI, and the keys, channels and names that the server stores for the client. (default: 1gb)' -r
complete -c ember-server -l maxmemory-clients -d 'The limit of the memory of all clients together: requests, transactions, subscriptions, unsent replies. Above it the clients that take most are disconnected, except those with CLIENT NO-EVICT; 0 for no limit. auto is half of maxmemory, but at least 64 MiB, and no limit while maxmemory is 0. (default: auto)' -r
complete -c ember-server -l proto-max-bulk-len -d 'The maximum length of an argument of a command, and of a string value. (default: 512mb)' -r
complete -c ember-server -l watch-max-per-client -d 'The maximum number of live queries per client; 0 for none. (default: 10000)' -r
complete -c ember-server -l watch-max-memory -d 'The memory limit of live queries, their watchers and results that are being sent. It is separate from maxmemory. (default: 256mb)' -r
complete -c ember-server -l watch-max-reply -d 'The maximum length of a result of a live query; instead of a longer one it sends an error with the length. (default: 1mb)' -r
complete -c ember-server -l busy-reply-threshold -l lua-time-limit -d 'Milliseconds after which a running script can be ended with SCRIPT KILL or FUNCTION KILL, and other clients receive BUSY; 0 for never. (default: 5000) Also --lua-time-limit.' -r
complete -c ember-server -l script-memory-limit -d 'The memory limit of the scripts of each worker, and the maximum length of the reply to a script; a script that exceeds it ends with an error. (default: 256mb)' -r
complete -c ember-server -l slowlog-log-slower-than -l commandlog-execution-slower-than -d 'Commands that take at least this many microseconds enter the slow log; 0 for all, -1 for none. (default: 10000) Also --commandlog-execution-slower-than.' -r
complete -c ember-server -l slowlog-max-len -l commandlog-slow-execution-max-len -d 'The maximum number of commands in the slow log. (default: 128) Also --commandlog-slow-execution-max-len.' -r
complete -c ember-server -l commandlog-request-larger-than -d 'Commands whose requests have at least this many bytes enter the log of large requests; -1 for none. (default: 1048576)' -r
complete -c ember-server -l commandlog-large-request-max-len -d 'The maximum number of commands in the log of large requests. (default: 128)' -r
complete -c ember-server -l commandlog-reply-larger-than -d 'Commands whose replies have at least this many bytes enter the log of large replies; -1 for none. (default: 1048576)' -r
complete -c ember-server -l commandlog-large-reply-max-len -d 'The maximum number of commands in the log of large replies. (default: 128)' -r
complete -c ember-server -l commandlog-key-larger-than -d 'Commands after which a key takes, with its value, at least this many bytes of memory enter the log of large keys; -1 for none. (default: 10485760)' -r
complete -c ember-server -l commandlog-large-key-max-len -d 'The maximum number of commands in the log of large keys. (default: 128)' -r
complete -c ember-server -l hotkeys-sampling -d 'HOTKEYS samples one of this many commands; 0 for none. (default: 64)' -r
complete -c ember-server -l latency-monitor-threshold -d 'Events of at least this many milliseconds are recorded for LATENCY; 0 for none. (default: 0)' -r
complete -c ember-server -l latency-tracking -d 'Whether a latency histogram is recorded for each command. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l latency-tracking-info-percentiles -d 'The percentiles of these latencies in INFO. (default: 50 99 99.9)' -r
complete -c ember-server -l metrics-port -d 'The HTTP port of /metrics (for Prometheus), /health and /ready; 0 for none. (default: 0)' -r
complete -c ember-server -l metrics-bind -d 'The addresses of that port, as in bind. Every client that can connect to them can read all metrics, which name commands and count keys but contain no data. The dashboard shows data. (default: 127.0.0.1 -::1)' -r
complete -c ember-server -l metrics-dashboard -d 'Whether that port serves /dashboard/, too: a page that shows the server and its keys with the rights of the user that logs in. It asks for a password if the default user needs one. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l http-watch-port -d 'The HTTP port on which browsers watch live queries (/watch); 0 for none. (default: 0)' -r
complete -c ember-server -l http-watch-bind -d 'The addresses of that port, as in bind. It has no TLS: on networks that others can intercept, use a proxy with TLS. (default: 127.0.0.1 -::1)' -r
complete -c ember-server -l http-watch-origins -d 'The origins of pages that may watch on that port, such as https://app.example; * for all. Programs and pages of the same origin need not be listed. (default: empty)' -r
complete -c ember-server -l http-watch-max-streams -d 'The maximum number of simultaneous streams; each also counts as a client (maxclients). (default: 1000)' -r
complete -c ember-server -l tracking-table-max-keys -d 'The maximum number of tracked keys; keys beyond it are invalidated; 0 for no limit. The sum is checked ten times a second; between checks each of the 1,024 shards has its share of the limit. (default: 1000000)' -r
complete -c ember-server -l notify-keyspace-events -d 'Which changes of keys are published: K on the channel of the key, E on that of the event; g generic commands, $ strings, l lists, s sets, h hashes, z sorted sets, x expired keys, e evicted keys, t streams, m reads of missing keys, n new keys, A for g$lshzxetd. (default: empty)' -r
complete -c ember-server -l loglevel -d 'The minimum severity of logged messages. (default: notice)' -r -f -a "debug\t''
verbose\t''
notice\t''
warning\t''
nothing\t''"
complete -c ember-server -l logfile -d 'The file to log to; empty for the standard output. (default: empty)' -r -F
complete -c ember-server -l syslog-enabled -d 'Whether the log is also sent to the system\'s log daemon, at /dev/log. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l syslog-ident -d 'The name of the server in that log. (default: redis)' -r -F
complete -c ember-server -l syslog-facility -d 'The syslog facility of these messages. (default: local0)' -r -f -a "user\t''
local0\t''
local1\t''
local2\t''
local3\t''
local4\t''
local5\t''
local6\t''
local7\t''"
complete -c ember-server -l log-format -d 'The format of log lines: legacy, time, level and message; logfmt, pairs of name and value; json, an object. (default: legacy)' -r -f -a "legacy\t''
logfmt\t''
json\t''"
complete -c ember-server -l log-timestamp-format -d 'The format of the time in log lines: legacy and iso8601, ISO 8601 in UTC, with microseconds or milliseconds; milliseconds, Unix time. (default: legacy)' -r -f -a "legacy\t''
iso8601\t''
milliseconds\t''"
complete -c ember-server -l availability-zone -d 'The server\'s zone in INFO and HELLO, for clients that prefer the nearest server. (default: empty)' -r
complete -c ember-server -l dir -l data-dir -d 'The working directory: relative paths of logfile, pidfile and unixsocket begin here, and it contains the data. It is created at startup if its parent exists. CONFIG SET changes it while there is no AOF and no snapshot is written. (default: .) Also --data-dir.' -r -f -a "(__fish_complete_directories)"
complete -c ember-server -l pidfile -d 'A file for the process id, removed at exit; empty for none. (default: empty)' -r -F
complete -c ember-server -l daemonize -d 'Whether the server runs in the background: the program returns at once, and a second process serves clients without a terminal. It logs to logfile, if set. No effect with a supervisor. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l supervised -d 'The supervisor that is notified when the server is ready: systemd through NOTIFY_SOCKET, upstart by a stop of the process (expect stop), or auto for the one whose variable is set: NOTIFY_SOCKET or UPSTART_JOB. (default: no)' -r -f -a "upstart\t''
systemd\t''
auto\t''
no\t''"
complete -c ember-server -l shutdown-timeout -d 'The seconds for which a shutdown waits until replicas have received all writes, and then until clients have read their last replies. (default: 10)' -r
complete -c ember-server -l shutdown-on-sigint -d 'The effect of SIGINT: that of SHUTDOWN with these options. (default: default)' -r
complete -c ember-server -l shutdown-on-sigterm -d 'The effect of SIGTERM: that of SHUTDOWN with these options. (default: default)' -r
complete -c ember-server -l oom-score-adj -d 'Whether the server sets its priority for the system\'s out-of-memory killer: absolute, to oom-score-adj-values; relative or yes, to the previous value plus these values. (default: no)' -r -f -a "no\t''
yes\t''
relative\t''
absolute\t''"
complete -c ember-server -l oom-score-adj-values -d 'The values for oom-score-adj, from -1000 (killed never) to 1000 (killed first): for a primary, a replica, and a child process, which this server does not have. (default: 0 200 800)' -r
complete -c ember-server -l set-proc-title -d 'Whether ps shows a title of the process instead of its command line; on Linux only. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l proc-title-template -d 'The text of that title: {title}, the name of the program; {listen-addr}, its first address; {port}, {tls-port}, {unixsocket}, {config-file}; {server-mode}, which is empty here. The title is as long as the command line at most; words beyond that are omitted. (default: {title} {listen-addr} {server-mode})' -r
complete -c ember-server -l server_cpulist -l server-cpulist -d 'The cores of the workers and of all threads without a separate list, such as 0,2,8-11 or 0-20:2; empty for all. (default: empty) Also --server-cpulist.' -r
complete -c ember-server -l bio_cpulist -l bio-cpulist -d 'The cores of the threads that sync the AOF and free large values. (default: empty) Also --bio-cpulist.' -r
complete -c ember-server -l aof_rewrite_cpulist -l aof-rewrite-cpulist -d 'The cores of the threads that rewrite the AOF. (default: empty) Also --aof-rewrite-cpulist.' -r
complete -c ember-server -l bgsave_cpulist -l bgsave-cpulist -d 'The cores of the threads that save in the background. (default: empty) Also --bgsave-cpulist.' -r
complete -c ember-server -l appendonly -d 'Whether every write is recorded in an append-only file (AOF), from which the data set is loaded at startup. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l appendfsync -d 'When a write is durable: always, before it is acknowledged; everysec, within about a second; no, when the operating system decides. (default: everysec)' -r -f -a "always\t''
everysec\t''
no\t''"
complete -c ember-server -l no-appendfsync-on-rewrite -d 'Whether appendfsync acts as no while the AOF is rewritten or a snapshot is written: writes are faster then, and a power cut may lose all writes of that time. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l appenddirname -d 'The directory in dir with the files of the AOF. (default: appendonlydir)' -r
complete -c ember-server -l appendfilename -d 'The prefix of the names of the AOF\'s files. (default: appendonly.aof)' -r
complete -c ember-server -l aof-timestamp-enabled -d 'Whether the AOF contains timestamps, so that it can be truncated at a given time. no takes effect with the next file, so that no change follows an earlier timestamp. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l aof-keep-seconds -d 'The seconds for which the files of the AOF are kept after a rewrite has replaced them, so that ember-cli restore can restore the data set to any moment of that time; 0 for removing them at once. Implies aof-timestamp-enabled. Not with a store that has its own files. (default: 0)' -r
complete -c ember-server -l history-keys -d 'The keys whose past states can be read: patterns as in KEYS, separated by spaces; keys that match a pattern after ! are left out. Empty for none, which costs nothing. (default: empty)' -r
complete -c ember-server -l history-path -d 'With history-keys: a directory, used by this server only, for past states. It is emptied at startup. (default: history)' -r -F
complete -c ember-server -l history-max-age -d 'The seconds for which past states can be read. They are removed in large parts, up to an eighth of this time later. (default: 604800)' -r
complete -c ember-server -l history-max-size -d 'The size limit of the files in history-path. The oldest states are removed before it is exceeded. (default: 10gb)' -r
complete -c ember-server -l history-max-memory -d 'The memory limit of the history\'s index, which takes about 60 bytes for each past state and 110 for each key. The oldest states are removed when it is exceeded. (default: 256mb)' -r
complete -c ember-server -l history-max-value -d 'The maximum memory of a key with its value for which states are recorded, because each change of a covered key records the whole value. Reads of a state that was not recorded return the error GAP. (default: 1mb)' -r
complete -c ember-server -l aof-load-truncated -d 'Whether the server truncates an AOF whose end was lost in a crash, and starts; otherwise it reports this and exits. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l aof-use-rdb-preamble -d 'Whether a rewrite writes the base of the AOF as an RDB file, which is smaller and loads faster. Otherwise the base consists of commands that recreate the data set. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l auto-aof-rewrite-percentage -d 'The growth of the AOF since its last rewrite, in per cent, that starts an automatic rewrite; 0 for never. (default: 100)' -r
complete -c ember-server -l auto-aof-rewrite-min-size -d 'The minimum size of the AOF for an automatic rewrite. (default: 64mb)' -r
complete -c ember-server -l aof-lag-limit -d 'With appendfsync everysec: the milliseconds within which a write must be durable. While a slow disk delays a write for longer, further writes wait, and are refused after aof-wait-limit; below 1000, writes wait for each fsync. 0 for no limit: writes are neither delayed nor refused because of a slow fsync. (default: 0)' -r
complete -c ember-server -l aof-wait-limit -d 'With aof-lag-limit: the milliseconds for which writes wait for a slow disk. After that they are refused with MISCONF until the disk has caught up. A connection whose replies wait for a failing disk is closed after this time. (default: 1000)' -r
complete -c ember-server -l dbfilename -d 'The RDB file in dir, in Redis\'s format, to which the data set is saved and from which it is loaded at startup. (default: dump.rdb)' -r
complete -c ember-server -l rdbcompression -d 'Whether strings in RDB files are compressed with LZF if that makes them shorter. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l encryption-key-file -d 'A file with the encryption keys of the data files: 32 bytes in hexadecimal digits or base64 on each line, the current key first, then older ones. Empty for the keys of the variable EMBER_ENCRYPTION_KEY, or no encryption without it. CONFIG SET reads the file again. (default: empty)' -r -F
complete -c ember-server -l save -d 'When the data set is saved in the background automatically: after a number of seconds with at least a number of changes; one fulfilled pair is enough. Empty for never; SHUTDOWN then saves only with SAVE. Further lines of a file add their pairs. (default: 3600 1 300 100 60 10000)' -r
complete -c ember-server -l stop-writes-on-bgsave-error -d 'Whether writes are refused after a failed background save until one succeeds, as long as there are rules in save. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l rdb-version-check -d 'Whether RDB files and payloads of RESTORE with an unknown version are refused (strict), or accepted if they contain nothing unknown (relaxed). Version 80, of Valkey 9, is known. (default: strict)' -r -f -a "strict\t''
relaxed\t''"
complete -c ember-server -l rdb-skip-unknown-modules -d 'Whether keys with values of unknown modules in an RDB file or a full sync are skipped with a warning; otherwise such a file is refused. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l rdb-target -d 'The server for which RDB files, bases of the append-only file and payloads of DUMP are written. redis: Redis 7.0, or the first Redis that supports all of the data (7.4 if a field of a hash expires); redis-7.2, redis-8 and valkey-9: that server. Data that it does not support is still written, so that nothing is lost, and the log warns that the server cannot read the file. (default: redis)' -r -f -a "redis\t''
redis-7.2\t''
redis-8\t''
valkey-9\t''"
complete -c ember-server -l store -d 'Where the data set is stored. map: in memory, with every write in a log; btree also keeps the names of keys in order, for KEYS. redb, lmdb and fjall: in files of that engine, with memory as their cache; bolt and bbolt mean redb, leveldb and kv fjall. Each implies appendonly yes, save "" and the values of path and fsync. none: those parameters decide. (default: none)' -r -f -a "none\t''
map\t''
btree\t''
redb\t''
lmdb\t''
fjall\t''
bolt\t''
bbolt\t''
leveldb\t''
kv\t''"
complete -c ember-server -l path -d 'The directory of a store, created if it is missing, instead of dir; by default the name of the store and .db. :memory: writes nothing to disk. (default: empty)' -r -F
complete -c ember-server -l fsync -d 'Whether a write to a store is durable before it is acknowledged (appendfsync always), or when the operating system decides (appendfsync no). (default: yes)' -r
complete -c ember-server -l replicaof -l slaveof -d 'Host and port of the primary to replicate. At run time the command REPLICAOF changes it. (default: empty) Also --slaveof.' -r
complete -c ember-server -l masterauth -l primaryauth -d 'The password with which a replica logs in to its primary. (default: empty) Also --primaryauth.' -r
complete -c ember-server -l masteruser -l primaryuser -d 'The user with which a replica logs in to its primary; without one it sends only the password. (default: empty) Also --primaryuser.' -r
complete -c ember-server -l bind-source-addr -d 'The local address of the connection to a primary, if possible. (default: empty)' -r
complete -c ember-server -l replica-serve-stale-data -l slave-serve-stale-data -d 'Whether a replica serves its data while it has no connection to its primary. (default: yes) Also --slave-serve-stale-data.' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l replica-read-only -l slave-read-only -d 'Whether a replica refuses writes of its clients. (default: yes) Also --slave-read-only.' -r -f -a "yes\t''"
complete -c ember-server -l replica-apply -d 'How a replica applies the stream of its primary: parallel, on all cores, each key in order and each transaction as a whole; or serial, on one core, so that readers never see a write without all earlier ones. (default: serial)' -r -f -a "parallel\t''
serial\t''"
complete -c ember-server -l replica-ignore-maxmemory -l slave-ignore-maxmemory -d 'Whether a replica leaves eviction to its primary. (default: yes) Also --slave-ignore-maxmemory.' -r -f -a "yes\t''"
complete -c ember-server -l replica-lazy-flush -l slave-lazy-flush -d 'Whether a replica frees its old data set in the background when it receives a new one. (default: no) Also --slave-lazy-flush.' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l replica-announced -d 'Whether this replica is reported to Sentinel. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l replica-ignore-disk-write-errors -d 'Whether a replica continues when it cannot write to its disk. No effect: a replica whose append-only file cannot be written applies nothing until it can. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l replica-priority -l slave-priority -d 'Which replica Sentinel promotes first: the one with the lowest number; 0 for never. (default: 100) Also --slave-priority.' -r
complete -c ember-server -l replica-announce-ip -l slave-announce-ip -d 'The address that a replica reports to its primary; empty for the source address of its connection. (default: empty) Also --slave-announce-ip.' -r
complete -c ember-server -l replica-announce-port -l slave-announce-port -d 'The port that a replica reports to its primary; 0 for the real one. (default: 0) Also --slave-announce-port.' -r
complete -c ember-server -l repl-diskless-sync -d 'Whether the data of a full sync is streamed to replicas while it is written, or sent when it is complete. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l repl-diskless-sync-delay -d 'The seconds for which a primary waits for more replicas before it starts their common snapshot. (default: 1)' -r
complete -c ember-server -l repl-diskless-sync-max-replicas -d 'The number of waiting replicas at which the snapshot starts at once; 0 for no such number. (default: 0)' -r
complete -c ember-server -l repl-diskless-load -d 'How a replica loads the data of its primary: directly from the link, without a file, replacing its own data. (default: disabled)' -r -f -a "disabled\t''
on-empty-db\t''
flush-before-load\t''"
complete -c ember-server -l repl-disable-tcp-nodelay -d 'Whether replicas receive fewer and larger packets, with more delay. It applies to replicas that connect from then on. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l repl-ping-replica-period -l repl-ping-slave-period -d 'The interval in seconds at which a primary sends PING to its replicas. (default: 10) Also --repl-ping-slave-period.' -r
complete -c ember-server -l repl-timeout -d 'The seconds without data after which primary and replica consider their connection broken. (default: 60)' -r
complete -c ember-server -l repl-backlog-size -d 'The size of the replication stream kept in memory for replicas that reconnect. (default: 16mb)' -r
complete -c ember-server -l repl-backlog-spill -d 'The size of the stream kept beyond that, in files without names, while a connected or disconnected replica still needs it. With 0 it is kept in memory for connected replicas, as far as client-output-buffer-limit replica allows. (default: 1gb)' -r
complete -c ember-server -l repl-backlog-ttl -d 'The seconds for which the stream is kept without replicas; 0 for ever. (default: 3600)' -r
complete -c ember-server -l min-replicas-to-write -l min-slaves-to-write -d 'The number of replicas below which a primary refuses writes. (default: 0) Also --min-slaves-to-write.' -r
complete -c ember-server -l min-replicas-max-lag -l min-slaves-max-lag -d 'The seconds within which these replicas must have reported. (default: 10) Also --min-slaves-max-lag.' -r
complete -c ember-server -l sync-replicas -d 'The number of replicas that must confirm a write before its reply; with fewer good replicas it is refused. (default: 0)' -r
complete -c ember-server -l sync-level -d 'Where these replicas must have the write: in memory, or on disk, in their append-only files. (default: memory)' -r -f -a "memory\t''
disk\t''"
complete -c ember-server -l sync-timeout -d 'The milliseconds without a confirmation by these replicas after which a client\'s connection is closed, because the outcome of its write is unknown. (default: 5000)' -r
complete -c ember-server -l rdb-del-sync-files -d 'Whether RDB files that were written for replication only are removed. No effect: the data of full syncs is in unnamed files, which the system removes. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l propagation-error-behavior -d 'The reaction to a failed command from the primary or a file. No effect: a command of the primary that fails stops the link. (default: ignore)' -r -f -a "ignore\t''
panic\t''
panic-on-replicas\t''"
complete -c ember-server -l tls-replication -d 'Whether a replica connects to its primary with TLS. The primary\'s certificate must be issued by an authority of tls-ca-cert-file or tls-ca-cert-dir for the host in replicaof. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l tls-client-cert-file -d 'The certificate that a replica presents to its primary; empty for that of tls-cert-file. (default: empty)' -r -F
complete -c ember-server -l tls-client-key-file -d 'The private key of that certificate. (default: empty)' -r -F
complete -c ember-server -l tls-client-key-file-pass -d 'The password of that key. (default: empty)' -r
complete -c ember-server -l replica-full-sync-buffer-limit -d 'The size of the primary\'s stream that a replica buffers during a full sync; 0 for the limit of client-output-buffer-limit. No effect: the primary keeps the stream that follows a snapshot. (default: 0)' -r
complete -c ember-server -l dual-channel-replication-enabled -d 'Whether the data set of a full sync is sent over a separate connection. No effect: data and stream come over one connection. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l repl-mptcp -d 'Whether a replica uses Multipath TCP to its primary. No effect: the link is TCP. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-enabled -d 'Whether the server is a node of a cluster. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-config-file -d 'The file in which a node stores the nodes of the cluster and their slots. (default: nodes.conf)' -r -F
complete -c ember-server -l cluster-node-timeout -d 'The time in ms, at least 200, from which the durations of leases (a half) and of the silence of a leader before an election (a sixth) follow. (default: 5000)' -r
complete -c ember-server -l cluster-auth-pass -d 'The secret of all nodes of a cluster, with which they authenticate each other; a change applies to new connections. On the command line every user of the machine can read it: prefer cluster-auth-pass-file. (default: empty)' -r
complete -c ember-server -l cluster-auth-pass-file -d 'A file that contains the secret of all nodes of a cluster, for example a secret of a container platform. (default: empty)' -r -F
complete -c ember-server -l cluster-unauthenticated -d 'Whether nodes on other machines may change the cluster without a secret or a certificate. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-bootstrap -d 'Whether a node that is in no cluster forms one, with all slots that have no owner. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-port -d 'The port for other nodes, which a node announces; 0 for the port of clients plus 10000. (default: 0)' -r
complete -c ember-server -l cluster-announce-ip -d 'The address that a node announces; empty for the one in its file. (default: empty)' -r
complete -c ember-server -l cluster-announce-port -d 'The port for clients that a node announces; 0 for its own. (default: 0)' -r
complete -c ember-server -l cluster-announce-tls-port -d 'The port for clients with TLS that a node announces; 0 for its own. (default: 0)' -r
complete -c ember-server -l cluster-announce-bus-port -d 'The port for nodes that a node announces; 0 for its own. (default: 0)' -r
complete -c ember-server -l cluster-announce-hostname -d 'The host name that a node announces. (default: empty)' -r
complete -c ember-server -l cluster-announce-human-nodename -d 'The name of a node in logs. (default: empty)' -r
complete -c ember-server -l cluster-preferred-endpoint-type -d 'The form in which clients receive the address of a node. (default: ip)' -r -f -a "ip\t''
hostname\t''
unknown-endpoint\t''"
complete -c ember-server -l cluster-migration-barrier -d 'The number of replicas that a primary keeps when one of them migrates to a primary without any. No effect: the feature is not available in this version. (default: 1)' -r
complete -c ember-server -l cluster-allow-replica-migration -d 'Whether replicas migrate to primaries without any. No effect: the feature is not available in this version. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-require-full-coverage -d 'Whether a cluster refuses all commands on keys while a slot has no node. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-replica-validity-factor -l cluster-slave-validity-factor -d 'The maximum age of the data of a replica that becomes a primary. No effect: the feature is not available in this version. (default: 10) Also --cluster-slave-validity-factor.' -r
complete -c ember-server -l cluster-replica-no-failover -l cluster-slave-no-failover -d 'Whether this node, as a replica, becomes a primary only by CLUSTER FAILOVER. (default: no) Also --cluster-slave-no-failover.' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-allow-reads-when-down -d 'Whether a node answers reads of its own slots while the cluster is down. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-allow-pubsubshard-when-down -d 'Whether a node serves its shard channels while the cluster is down. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-link-sendbuf-limit -d 'The unsent bytes above which the connection to another node is closed; 0 for never. No effect: the feature is not available in this version. (default: 0)' -r
complete -c ember-server -l tls-cluster -d 'Whether the connections between nodes use TLS. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-announce-client-ipv4 -d 'The address that clients receive over IPv4. No effect: the feature is not available in this version. (default: empty)' -r
complete -c ember-server -l cluster-announce-client-ipv6 -d 'The address that clients receive over IPv6. No effect: the feature is not available in this version. (default: empty)' -r
complete -c ember-server -l cluster-announce-client-port -d 'The port that clients receive. No effect: the feature is not available in this version. (default: 0)' -r
complete -c ember-server -l cluster-announce-client-tls-port -d 'The port that clients with TLS receive. No effect: the feature is not available in this version. (default: 0)' -r
complete -c ember-server -l cluster-blacklist-ttl -d 'The seconds for which a forgotten node is not added again. No effect: the feature is not available in this version. (default: 60)' -r
complete -c ember-server -l cluster-config-save-behavior -d 'Whether a node exits when it cannot write its file. No effect: the feature is not available in this version. (default: sync)' -r -f -a "sync\t''
best-effort\t''"
complete -c ember-server -l cluster-databases -d 'The number of databases of a node of a cluster. (default: 1)' -r
complete -c ember-server -l cluster-manual-failover-timeout -d 'The milliseconds after which a manual failover is abandoned. No effect: the feature is not available in this version. (default: 5000)' -r
complete -c ember-server -l cluster-slot-stats-enabled -d 'Whether the resource usage of each slot is counted. No effect: the feature is not available in this version. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-slot-migration-log-max-len -d 'The maximum number of slot migrations in the log. No effect: the feature is not available in this version. (default: 1000)' -r
complete -c ember-server -l slot-migration-max-failover-repl-bytes -d 'The unsent bytes below which a slot migration completes; -1 for any number. No effect: the feature is not available in this version. (default: 0)' -r
complete -c ember-server -l cluster-compatibility-sample-ratio -d 'The percentage of commands that are checked for compatibility with a cluster. No effect: the feature is not available in this version. (default: 0)' -r
complete -c ember-server -l always-show-logo -d 'Whether the log begins with a logo. No effect: there is no logo. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l io-threads -d 'The number of threads that read and write. No effect: each worker reads, runs and writes; shards is the number of workers, by default one per core. (default: 1)' -r
complete -c ember-server -l io-threads-do-reads -d 'Whether those threads also read. No effect: each worker reads, runs and writes; shards is the number of workers, by default one per core. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l disable-thp -d 'Whether huge pages are disabled for the process. No effect: the server does not fork, so huge pages are never copied and are useful. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l jemalloc-bg-thread -d 'Whether a thread of the allocator returns memory to the system. No effect: such a thread always runs. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l dynamic-hz -d 'Whether background work runs more often with many clients. No effect: each worker has its share of the background work. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l activerehashing -d 'Whether tables are rehashed in the background, too. No effect: tables grow and shrink group by group as keys are added and removed. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l aof-rewrite-incremental-fsync -d 'Whether a rewritten AOF is synced in parts. No effect: a file is synced once, when it is complete. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l rdb-save-incremental-fsync -d 'Whether an RDB file is synced in parts. No effect: a file is synced once, when it is complete. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l rdbchecksum -d 'Whether RDB files end with a checksum, which is verified when they are loaded. No effect: RDB files always end with a checksum, whose cost is negligible. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l sanitize-dump-payload -d 'Whether RESTORE checks a whole value before it is used. No effect: values of RESTORE are always checked in full, for every client. (default: no)' -r -f -a "no\t''
yes\t''
clients\t''"
complete -c ember-server -l maxmemory-eviction-tenacity -d 'The maximum duration of one round of eviction. No effect: keys are evicted until there is enough memory, before the command that needs it runs. (default: 10)' -r
complete -c ember-server -l crash-log-enabled -d 'Whether a crash is logged. No effect: a crash ends the process with a message and the system\'s core dump. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l crash-memcheck-enabled -d 'Whether memory is tested after a crash. No effect: a crash ends the process with a message and the system\'s core dump. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l enable-module-command -d 'Which clients may use MODULE: none, all, or those on this machine. No effect: there are no modules. (default: no)' -r -f -a "no\t''
yes\t''
local\t''"
complete -c ember-server -l ignore-warnings -d 'The startup warnings that do not prevent startup. No effect: no warning prevents startup. (default: empty)' -r
complete -c ember-server -l locale-collate -d 'The locale whose order SORT and Lua use to compare strings. No effect: strings are compared byte by byte. (default: empty)' -r
complete -c ember-server -l socket-mark-id -d 'The mark of sockets for the system\'s packet filters; 0 for none. No effect: sockets are not marked in this version. (default: 0)' -r
complete -c ember-server -l tls-dh-params-file -d 'The parameters of the Diffie-Hellman key exchange. No effect: key exchange uses elliptic curves only. (default: empty)' -r
complete -c ember-server -l prefetch-batch-max-size -d 'The number of keys that are prefetched into the CPU cache. No effect: the keys of all commands that have arrived together are prefetched. (default: 16)' -r
complete -c ember-server -l extended-redis-compatibility -d 'Whether the server identifies itself as Redis to clients. No effect: the server always behaves like Redis. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l hash-seed -d 'The seed of the tables\' hash function. No effect: tables are keyed with a new random number at each start. (default: empty)' -r
complete -c ember-server -l mptcp -d 'Whether clients may use Multipath TCP. No effect: there is no Multipath TCP in this version. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l rdma-port -d 'The port for connections over RDMA. No effect: there are no connections over RDMA in this version. (default: 0)' -r
complete -c ember-server -l rdma-bind -d 'The addresses for connections over RDMA. No effect: there are no connections over RDMA in this version. (default: empty)' -r
complete -c ember-server -l rdma-rx-size -d 'The size of a connection\'s buffer over RDMA. No effect: there are no connections over RDMA in this version. (default: 1048576)' -r
complete -c ember-server -l rdma-completion-vector -d 'The completion vector of connections over RDMA; -1 for any. No effect: there are no connections over RDMA in this version. (default: -1)' -r
complete -c ember-server -l hide-user-data-from-log -d 'Whether keys and values are omitted from the log. No effect: the log contains no keys and no values, except those of a damaged file during loading. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l aof-disable-auto-gc -d 'Whether old files of the AOF are kept. No effect: files of the AOF are removed as soon as no manifest names them. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l loading-process-events-interval-bytes -d 'The bytes of a file that are loaded before clients are served in between. No effect: workers serve clients while a file is loaded. (default: 2097152)' -r
complete -c ember-server -l cluster-ping-interval -d 'The interval in milliseconds at which nodes send PING to each other; 0 for the default. No effect: the feature is not available in this version. (default: 0)' -r
complete -c ember-server -l rdb-key-save-delay -d 'The delay in microseconds after each key while an RDB file is written; if negative, the number of keys after which there is a delay of one microsecond. The delay is at most ten seconds per key. (default: 0)' -r
complete -c ember-server -l key-load-delay -d 'The same for each key and command while a file is loaded. (default: 0)' -r
complete -c ember-server -l tiered-goal -d 'The percentage of maxmemory above which values are demoted; 0 demotes all eligible values continuously. (default: 90)' -r
complete -c ember-server -l use-exit-on-panic -d 'Whether a failed assertion ends the process without a core dump. No effect: a panic always aborts the process. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l watchdog-period -d 'The milliseconds after which a running call is logged; 0 for never. No effect: the slow log and LATENCY record slow calls. (default: 0)' -r
complete -c ember-server -s h -l help -d 'Prints all parameters'
complete -c ember-server -s v -l version -d 'Prints the version'
