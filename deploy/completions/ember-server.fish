complete -c ember-server -s c -l config -d 'The same as FILE' -r -F
complete -c ember-server -l check-config -d 'Says what is wrong with the configuration, if anything is, and exits' -r -F
complete -c ember-server -l bind -l host -d 'The addresses to listen on: IP addresses, host names, * (all IPv4) or ::* (all IPv6). A - before an address makes it no error when the machine does not have it. Without any address there is no TCP listener. (default: 127.0.0.1 -::1) Also --host.' -r
complete -c ember-server -s p -l port -d 'The TCP port to listen on; 0 for no TCP listener. (default: 6379)' -r
complete -c ember-server -l redis-version -d 'The version of Redis that clients and scripts are told: by INFO, HELLO, LOLWUT, redis.REDIS_VERSION and metrics. Nothing else depends on it; some client libraries use what newer versions have, and is here, too, only where the version says so. (default: 7.2.4)' -r
complete -c ember-server -l tcp-backlog -d 'How many connections may wait to be accepted; the kernel\'s somaxconn limits it further. (default: 511)' -r
complete -c ember-server -l unixsocket -d 'The path of a Unix socket to listen on; empty for none. (default: empty)' -r -F
complete -c ember-server -l unixsocketperm -d 'The permissions of the Unix socket; 0 leaves them to the umask. (default: 0)' -r
complete -c ember-server -l unixsocketgroup -d 'The group that the Unix socket belongs to: a name of /etc/group or a number; empty for that of the process. (default: empty)' -r
complete -c ember-server -l timeout -d 'Seconds after which an idle connection is closed; 0 for never. (default: 0)' -r
complete -c ember-server -l tcp-keepalive -d 'Seconds between TCP keep-alive probes on an idle connection; 0 for none. (default: 300)' -r
complete -c ember-server -l maxclients -d 'How many clients may be connected at a time. (default: 10000)' -r
complete -c ember-server -l max-new-connections-per-cycle -d 'How many connections are accepted in one turn of the event loop, before those there are are served again. (default: 10)' -r
complete -c ember-server -l max-new-tls-connections-per-cycle -d 'How many connections with TLS, likewise: each handshake takes the time of many commands. (default: 1)' -r
complete -c ember-server -l protected-mode -d 'Whether only clients on this machine are served while there is no password. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l requirepass -d 'The password of the default user; empty for none. On the command line every user of the machine can read it: prefer requirepass-file. (default: empty)' -r
complete -c ember-server -l requirepass-file -d 'A file whose first line is the password, read once at the start; empty for none. The later of requirepass and this one counts. (default: empty)' -r -F
complete -c ember-server -l aclfile -d 'A file with users, read at the start and by ACL LOAD, written by ACL SAVE; empty for none. Users stand there or in lines user of the configuration file, not in both. (default: empty)' -r -F
complete -c ember-server -l acl-pubsub-default -d 'Which channels of publish and subscribe new users may use. (default: resetchannels)' -r -f -a "allchannels\t''
resetchannels\t''"
complete -c ember-server -l acllog-max-len -d 'How many denials ACL LOG keeps. (default: 128)' -r
complete -c ember-server -l enable-debug-command -d 'Which clients may use DEBUG: none, all, or those on this machine. (default: no)' -r -f -a "no\t''
yes\t''
local\t''"
complete -c ember-server -l enable-protected-configs -d 'Which clients may change dir and dbfilename by CONFIG SET: none, all, or those on this machine. (default: no)' -r -f -a "no\t''
yes\t''
local\t''"
complete -c ember-server -l tls-port -d 'The TCP port for connections with TLS, on the addresses of bind; 0 for none. With port 0 there are no others. (default: 0)' -r
complete -c ember-server -l tls-cert-file -d 'The server\'s certificate and those it depends on, in the PEM format. Each CONFIG SET of a parameter of TLS, to the same value too, reads all files again, for connections to come. (default: empty)' -r -F
complete -c ember-server -l tls-key-file -d 'The private key of that certificate, in the PEM format. (default: empty)' -r -F
complete -c ember-server -l tls-key-file-pass -d 'The password of that key, if it is encrypted: with PBES2 and AES-CBC, as OpenSSL does. (default: empty)' -r
complete -c ember-server -l tls-ca-cert-file -d 'The certificates of the authorities whose clients are trusted, in the PEM format. (default: empty)' -r -F
complete -c ember-server -l tls-ca-cert-dir -d 'A directory of files with more such certificates. (default: empty)' -r -F
complete -c ember-server -l tls-auth-clients -d 'Whether clients must show a certificate (yes), may show one (optional) or are not asked for one. (default: yes)' -r -f -a "no\t''
yes\t''
optional\t''"
complete -c ember-server -l tls-auth-clients-user -d 'Which user a client is whose certificate was accepted: the one named by its common name (CN), or by the first URI among its alternative names that is the name of a user (URI). A client without such a user, or one that is off, logs in as others do; off for all of them. (default: off)' -r -f -a "CN\t''
URI\t''
off\t''"
complete -c ember-server -l tls-protocols -d 'The versions of TLS that are spoken; empty for both. (default: empty)' -r
complete -c ember-server -l tls-ciphers -d 'The cipher suites of TLS 1.2, the preferred ones first; empty for all. (default: empty)' -r
complete -c ember-server -l tls-ciphersuites -d 'The cipher suites of TLS 1.3, the preferred ones first; empty for all. (default: empty)' -r
complete -c ember-server -l tls-prefer-server-ciphers -d 'Whether the server\'s order of cipher suites counts, not the client\'s. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l tls-session-caching -d 'Whether clients may resume a session with a shorter handshake. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l tls-session-cache-size -d 'The number of sessions in that cache. (default: 20480)' -r
complete -c ember-server -l tls-session-cache-timeout -d 'The seconds for which a session is cached. (default: 300)' -r
complete -c ember-server -l tls-auto-reload-interval -d 'The interval in seconds at which the files of TLS are checked, and read again if they have changed; 0 for never. (default: 0)' -r
complete -c ember-server -l shards -d 'How many worker threads serve clients; 0 for one per core. (default: 0)' -r
complete -c ember-server -l concurrent -d 'Whether the worker which reads a command also runs it (yes), or forwards it to the worker which owns the key (no). (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l long-call-elements -d 'A command that looks at more elements than this runs on a thread of its own while its worker serves other clients; 0 for never. (default: 16384)' -r
complete -c ember-server -l databases -d 'How many databases SELECT can choose from. (default: 16)' -r
complete -c ember-server -l hash-function -d 'The hash function of keys and of members and fields. siphash is slower and withstands clients which choose keys that collide. (default: rapidhash)' -r -f -a "rapidhash\t''
siphash\t''"
complete -c ember-server -l hz -d 'How often per second background work runs: expiry of keys, idle connections, statistics. (default: 10)' -r
complete -c ember-server -l active-expire-effort -d 'How much of its time a worker gives to keys which have expired: in each turn of its loop it looks at this many thousands of them, about 0.1 ms for each thousand. (default: 1)' -r
complete -c ember-server -l maxmemory -l max-memory -d 'The memory limit of the data and of clients\' buffers, above which keys are evicted or writes refused; 0 for no limit. (default: 0) Also --max-memory.' -r
complete -c ember-server -l maxmemory-policy -l eviction-policy -d 'Which keys are evicted at maxmemory. (default: noeviction) Also --eviction-policy.' -r -f -a "volatile-lru\t''
volatile-lfu\t''
volatile-random\t''
volatile-ttl\t''
allkeys-lru\t''
allkeys-lfu\t''
allkeys-random\t''
noeviction\t''"
complete -c ember-server -l maxmemory-samples -d 'The number of keys that are sampled to choose one to evict. (default: 5)' -r
complete -c ember-server -l lfu-log-factor -d 'How much slower the access counter of the LFU policies grows the larger it is. (default: 10)' -r
complete -c ember-server -l lfu-decay-time -d 'Minutes after which the access counter of the LFU policies is decremented; 0 for never. (default: 1)' -r
complete -c ember-server -l lazyfree-lazy-eviction -d 'Whether replicas and the append-only file get UNLINK for what is evicted, not DEL. Here large values are freed in the background in any case. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l lazyfree-lazy-expire -d 'Whether replicas and the append-only file get UNLINK for what has expired, not DEL. Here large values are freed in the background in any case. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l lazyfree-lazy-server-del -d 'Whether replicas and the append-only file get UNLINK, not DEL, for what SPOP has emptied and RESTORE has found to be expired. Here large values are freed in the background in any case. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l lazyfree-lazy-user-del -d 'Whether DEL frees in the background, as UNLINK does. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l activedefrag -d 'Whether a thread defragments memory while too much of it is unused between allocations. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l active-defrag-cycle-min -d 'The least effort of activedefrag, in per cent of a processor: at active-defrag-threshold-lower. (default: 1)' -r
complete -c ember-server -l active-defrag-cycle-max -d 'The most effort of activedefrag, in per cent of a processor: from active-defrag-threshold-upper on. (default: 25)' -r
complete -c ember-server -l active-defrag-threshold-lower -d 'activedefrag starts when the memory in use exceeds the allocated memory by this percentage; above maxmemory by half of it. (default: 10)' -r
complete -c ember-server -l active-defrag-threshold-upper -d 'The percentage from which activedefrag uses its maximum effort. (default: 100)' -r
complete -c ember-server -l active-defrag-ignore-bytes -d 'activedefrag does nothing while less memory than this is unused between allocations, unless the memory in use is above maxmemory. (default: 100mb)' -r
complete -c ember-server -l active-defrag-max-scan-fields -d 'activedefrag scans values with more elements than this in parts, others whole. (default: 1000)' -r
complete -c ember-server -l active-defrag-cycle-us -d 'For how many microseconds activedefrag works before it pauses; at least one short step is done. (default: 500)' -r
complete -c ember-server -l tiered-path -d 'A directory of this server\'s own for values that memory has no room for; empty for none. It needs maxmemory, and is emptied at the start. (default: empty)' -r -F
complete -c ember-server -l tiered-max-size -d 'The size limit of the files in tiered-path; 0 for nine tenths of the free space on their disk. (default: 0)' -r
complete -c ember-server -l tiered-min-value -d 'Keys that take no more memory than this with their values stay in memory. (default: 64)' -r
complete -c ember-server -l tiered-max-value -d 'Keys that take more memory than this with their values stay in memory. (default: 64mb)' -r
complete -c ember-server -l storage-io-threads -d 'Threads that read values which are not in memory; 0 for two for each processor, 4 to 16. (default: 0)' -r
complete -c ember-server -l import-mode -d 'Whether this server is being filled from another one, which decides when keys expire: nothing expires or is evicted by itself; see CLIENT IMPORT-SOURCE. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l lazyfree-lazy-user-flush -d 'Whether FLUSHALL and FLUSHDB free in the background when they say neither SYNC nor ASYNC. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l hash-max-listpack-entries -l hash-max-ziplist-entries -d 'The maximum number of fields of a hash in one packed buffer. (default: 512) Also --hash-max-ziplist-entries.' -r
complete -c ember-server -l hash-max-listpack-value -l hash-max-ziplist-value -d 'Up to how many bytes the longest of a hash\'s fields and values may have in one packed buffer. (default: 64) Also --hash-max-ziplist-value.' -r
complete -c ember-server -l set-max-intset-entries -d 'The maximum number of members of a set that is stored as an array of integers. (default: 512)' -r
complete -c ember-server -l set-max-listpack-entries -d 'The maximum number of members of a set in one packed buffer. (default: 128)' -r
complete -c ember-server -l set-max-listpack-value -d 'Up to how many bytes the longest of a set\'s members may have in one packed buffer. (default: 64)' -r
complete -c ember-server -l zset-max-listpack-entries -l zset-max-ziplist-entries -d 'The maximum number of members of a sorted set in one packed buffer. (default: 128) Also --zset-max-ziplist-entries.' -r
complete -c ember-server -l zset-max-listpack-value -l zset-max-ziplist-value -d 'Up to how many bytes the longest of a sorted set\'s members may have in one packed buffer. (default: 64) Also --zset-max-ziplist-value.' -r
complete -c ember-server -l list-max-listpack-size -l list-max-ziplist-size -d 'How many elements a node of a list holds, or, as -1 to -5, 4, 8, 16, 32 or 64 kb of them. (default: -2) Also --list-max-ziplist-size.' -r
complete -c ember-server -l list-compress-depth -d 'How many nodes at each end of a list are not compressed; 0 if no node is to be. It counts for nodes which are made or changed from then on. (default: 0)' -r
complete -c ember-server -l stream-node-max-bytes -d 'How many bytes a node of a stream holds; 0 for no limit. (default: 4096)' -r
complete -c ember-server -l stream-node-max-entries -d 'How many entries a node of a stream holds; 0 for no limit. (default: 100)' -r
complete -c ember-server -l hll-sparse-max-bytes -d 'The maximum number of bytes of a HyperLogLog in sparse form. (default: 3000)' -r
complete -c ember-server -l client-output-buffer-limit -d 'When a client which does not read its replies is disconnected: at once above hard bytes, or after seconds above soft bytes; 0 for never. The classes are normal, replica (or slave) and pubsub; a class which is not named keeps its limit. What MONITOR and client-side caching send counts against pubsub, by itself. (default: normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60)' -r
complete -c ember-server -l client-query-buffer-limit -d 'How much of a client\'s input may wait to be run before the client is disconnected. Calls queued since MULTI count, and keys, channels and names which the client makes the server keep. (default: 1gb)' -r
complete -c ember-server -l maxmemory-clients -d 'How much memory all clients may take together: requests, transactions, subscriptions, replies which wait. From there on those which take most are disconnected, but not those with CLIENT NO-EVICT; 0 for no limit. auto is half of maxmemory, but at least 64 MiB, and no limit while maxmemory is 0. (default: auto)' -r
complete -c ember-server -l proto-max-bulk-len -d 'The longest argument of a command, and the longest string value. (default: 512mb)' -r
complete -c ember-server -l watch-max-per-client -d 'How many live queries one client may watch; 0 for none. (default: 10000)' -r
complete -c ember-server -l watch-max-memory -d 'The memory limit of live queries, their watchers and results that are being sent. It is separate from maxmemory. (default: 256mb)' -r
complete -c ember-server -l watch-max-reply -d 'The maximum length of a result of a live query; instead of a longer one it sends an error with the length. (default: 1mb)' -r
complete -c ember-server -l busy-reply-threshold -l lua-time-limit -d 'Milliseconds after which a running script can be ended with SCRIPT KILL or FUNCTION KILL, and other clients receive BUSY; 0 for never. (default: 5000) Also --lua-time-limit.' -r
complete -c ember-server -l script-memory-limit -d 'How much memory the scripts of each worker may take, and how long the reply to one may be; one that asks for more gets an error. (default: 256mb)' -r
complete -c ember-server -l slowlog-log-slower-than -l commandlog-execution-slower-than -d 'Commands which take at least this many microseconds enter the slow log; 0 for all, -1 for none. (default: 10000) Also --commandlog-execution-slower-than.' -r
complete -c ember-server -l slowlog-max-len -l commandlog-slow-execution-max-len -d 'How many commands the slow log keeps. (default: 128) Also --commandlog-slow-execution-max-len.' -r
complete -c ember-server -l commandlog-request-larger-than -d 'Commands which come in at least this many bytes enter the log of large requests; -1 for none. (default: 1048576)' -r
complete -c ember-server -l commandlog-large-request-max-len -d 'How many commands the log of large requests keeps. (default: 128)' -r
complete -c ember-server -l commandlog-reply-larger-than -d 'Commands which are answered in at least this many bytes enter the log of large replies; -1 for none. (default: 1048576)' -r
complete -c ember-server -l commandlog-large-reply-max-len -d 'How many commands the log of large replies keeps. (default: 128)' -r
complete -c ember-server -l commandlog-key-larger-than -d 'Commands which make a key take, with its value, at least this many bytes of memory enter the log of large keys; -1 for none. (default: 10485760)' -r
complete -c ember-server -l commandlog-large-key-max-len -d 'How many commands the log of large keys keeps. (default: 128)' -r
complete -c ember-server -l hotkeys-sampling -d 'HOTKEYS looks at one of this many commands; 0 for none. (default: 64)' -r
complete -c ember-server -l latency-monitor-threshold -d 'Events of at least this many milliseconds are recorded for LATENCY; 0 for none. (default: 0)' -r
complete -c ember-server -l latency-tracking -d 'Whether a latency histogram is recorded for each command. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l latency-tracking-info-percentiles -d 'The percentiles of those latencies which INFO shows. (default: 50 99 99.9)' -r
complete -c ember-server -l metrics-port -d 'The HTTP port of /metrics (for Prometheus), /health and /ready; 0 for none. (default: 0)' -r
complete -c ember-server -l metrics-bind -d 'The addresses of that port, as in bind. Every client that can connect to them can read all metrics, which name commands and count keys but contain no data. The dashboard shows data. (default: 127.0.0.1 -::1)' -r
complete -c ember-server -l metrics-dashboard -d 'Whether that port serves /dashboard/, too: a page that shows the server and its keys with the rights of the user that logs in. It asks for a password if the default user needs one. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l http-watch-port -d 'The HTTP port on which browsers watch live queries (/watch); 0 for none. (default: 0)' -r
complete -c ember-server -l http-watch-bind -d 'The addresses to listen on there, as in bind. It has no TLS: where others listen in, a proxy has to be in front. (default: 127.0.0.1 -::1)' -r
complete -c ember-server -l http-watch-origins -d 'The origins whose pages may watch there, such as https://app.example; * for all. Programs and pages of the same origin need not be listed. (default: empty)' -r
complete -c ember-server -l http-watch-max-streams -d 'How many streams there may be at a time; each is a client too (maxclients). (default: 1000)' -r
complete -c ember-server -l tracking-table-max-keys -d 'The maximum number of tracked keys; keys beyond it are invalidated; 0 for no limit. The sum is checked ten times a second; in between each of the 1,024 shards keeps to its share. (default: 1000000)' -r
complete -c ember-server -l notify-keyspace-events -d 'Which changes of keys are published: K on the channel of the key, E on that of the event; g generic commands, $ strings, l lists, s sets, h hashes, z sorted sets, x expired keys, e evicted keys, t streams, m reads of missing keys, n new keys, A for g$lshzxetd. (default: empty)' -r
complete -c ember-server -l loglevel -d 'The least severe messages which are logged. (default: notice)' -r -f -a "debug\t''
verbose\t''
notice\t''
warning\t''
nothing\t''"
complete -c ember-server -l logfile -d 'The file to log to; empty for the standard output. (default: empty)' -r -F
complete -c ember-server -l syslog-enabled -d 'Whether the system\'s log daemon, at /dev/log, gets the log too. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l syslog-ident -d 'The name of the server there. (default: redis)' -r -F
complete -c ember-server -l syslog-facility -d 'The facility it is logged under there. (default: local0)' -r -f -a "user\t''
local0\t''
local1\t''
local2\t''
local3\t''
local4\t''
local5\t''
local6\t''
local7\t''"
complete -c ember-server -l log-format -d 'What a line of the log looks like: legacy, time, level and message; logfmt, pairs of name and value; json, an object. (default: legacy)' -r -f -a "legacy\t''
logfmt\t''
json\t''"
complete -c ember-server -l log-timestamp-format -d 'The time there: legacy and iso8601, ISO 8601 in UTC, with microseconds or milliseconds; milliseconds, Unix time. (default: legacy)' -r -f -a "legacy\t''
iso8601\t''
milliseconds\t''"
complete -c ember-server -l availability-zone -d 'The server\'s zone in INFO and HELLO, for clients that prefer the nearest server. (default: empty)' -r
complete -c ember-server -l dir -l data-dir -d 'The working directory: relative paths of logfile, pidfile and unixsocket begin here, and it contains the data. CONFIG SET changes it while there is no AOF and no snapshot is written. (default: .) Also --data-dir.' -r -f -a "(__fish_complete_directories)"
complete -c ember-server -l pidfile -d 'A file for the process id, removed at exit; empty for none. (default: empty)' -r -F
complete -c ember-server -l daemonize -d 'Whether the server runs in the background: the program returns at once, and another process of it serves without a terminal. What it logs goes to logfile, if there is one. No effect with a supervisor. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l supervised -d 'The supervisor that is notified when the server is ready: systemd through NOTIFY_SOCKET, upstart by a stop of the process (expect stop), or auto for the one whose variable is set: NOTIFY_SOCKET or UPSTART_JOB. (default: no)' -r -f -a "upstart\t''
systemd\t''
auto\t''
no\t''"
complete -c ember-server -l shutdown-timeout -d 'Seconds a shutdown may wait for replicas to get all that was written, and then for clients to read their last replies. (default: 10)' -r
complete -c ember-server -l shutdown-on-sigint -d 'How SIGINT ends the server: as SHUTDOWN with these options does. (default: default)' -r
complete -c ember-server -l shutdown-on-sigterm -d 'How SIGTERM ends the server, likewise. (default: default)' -r
complete -c ember-server -l oom-score-adj -d 'Whether the server sets its priority for the system\'s out-of-memory killer: absolute, to the value below; relative or yes, to the previous value plus the one below. (default: no)' -r -f -a "no\t''
yes\t''
relative\t''
absolute\t''"
complete -c ember-server -l oom-score-adj-values -d 'The value for that, from -1000 (never) to 1000 (first): of a primary, of a replica, and of a child process, which this server does not have. (default: 0 200 800)' -r
complete -c ember-server -l set-proc-title -d 'Whether ps shows a title of the process instead of its command line; on Linux only. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l proc-title-template -d 'The text of that title: {title}, the name of the program; {listen-addr}, its first address; {port}, {tls-port}, {unixsocket}, {config-file}; {server-mode}, which is empty here. The title is as long as the command line at most; words beyond that are omitted. (default: {title} {listen-addr} {server-mode})' -r
complete -c ember-server -l server_cpulist -l server-cpulist -d 'The cores of the workers and of all threads that have no list of their own, such as 0,2,8-11 or 0-20:2; empty for all. (default: empty) Also --server-cpulist.' -r
complete -c ember-server -l bio_cpulist -l bio-cpulist -d 'The cores of the threads that make the AOF durable and free large values. (default: empty) Also --bio-cpulist.' -r
complete -c ember-server -l aof_rewrite_cpulist -l aof-rewrite-cpulist -d 'The cores of the threads that rewrite the AOF. (default: empty) Also --aof-rewrite-cpulist.' -r
complete -c ember-server -l bgsave_cpulist -l bgsave-cpulist -d 'The cores of the threads that save in the background. (default: empty) Also --bgsave-cpulist.' -r
complete -c ember-server -l appendonly -d 'Whether every write is recorded in an append-only file (AOF), from which the data set is loaded at startup. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l appendfsync -d 'When a write is durable: always, before it is acknowledged; everysec, within about a second; no, when the operating system sees fit. (default: everysec)' -r -f -a "always\t''
everysec\t''
no\t''"
complete -c ember-server -l no-appendfsync-on-rewrite -d 'Whether appendfsync is as good as no while the AOF is rewritten or a snapshot written: writes are faster then, and a power cut may take those of the whole time. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l appenddirname -d 'The directory in dir with the files of the AOF. (default: appendonlydir)' -r
complete -c ember-server -l appendfilename -d 'How the names of the files of the AOF begin. (default: appendonly.aof)' -r
complete -c ember-server -l aof-timestamp-enabled -d 'Whether the AOF says the time of its commands, so that it can be cut at a time. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l aof-load-truncated -d 'Whether the server starts when the end of the AOF was lost in a crash, and cuts it there; otherwise it says so and ends. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l aof-use-rdb-preamble -d 'Whether a rewrite writes the base of the AOF as an RDB file: it is smaller and loaded faster. Otherwise the base is the commands that make the data set. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l auto-aof-rewrite-percentage -d 'By how much per cent the AOF must have grown since its last rewrite to be rewritten by itself; 0: never. (default: 100)' -r
complete -c ember-server -l auto-aof-rewrite-min-size -d 'An AOF below this size is not rewritten by itself. (default: 64mb)' -r
complete -c ember-server -l aof-lag-limit -d 'With appendfsync everysec: how many ms a write may stay without being durable because the disk is slow. While one is older, writes wait, and are refused after aof-wait-limit; below 1000 they wait for each fsync. 0 for no limit: writes are neither delayed nor refused because an fsync takes long. (default: 0)' -r
complete -c ember-server -l aof-wait-limit -d 'With aof-lag-limit: how many ms writes wait for a slow disk. After that they are refused with MISCONF until the disk has caught up. A connection whose replies wait for a disk that fails is closed after this time. (default: 1000)' -r
complete -c ember-server -l dbfilename -d 'The file in dir that the data set is read from at the start, if it is there, and that is written: an RDB file as Redis has it. (default: dump.rdb)' -r
complete -c ember-server -l rdbcompression -d 'Whether strings in RDB files are packed by LZF where that makes them shorter. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l encryption-key-file -d 'A file with the keys that files of the data set are encrypted with: 32 bytes in hexadecimal digits or base64 on each line, the current key first, then older ones. Empty for the keys of the variable EMBER_ENCRYPTION_KEY, or no encryption without it. CONFIG SET reads the file again. (default: empty)' -r -F
complete -c ember-server -l save -d 'When the data set is saved in the background automatically: after a number of seconds with at least a number of changes; one fulfilled pair is enough. Empty for never; SHUTDOWN then saves only with SAVE. Further lines of a file add their pairs. (default: 3600 1 300 100 60 10000)' -r
complete -c ember-server -l stop-writes-on-bgsave-error -d 'Whether writes are refused after saving in the background has failed, until it succeeds: only while there are rules in save. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l rdb-version-check -d 'Whether RDB files, and payloads of RESTORE, of versions that are not known yet are refused: strict; with relaxed they are read as far as they hold nothing that is unknown, and refused where they do. Version 80, of Valkey 9, is known. (default: strict)' -r -f -a "strict\t''
relaxed\t''"
complete -c ember-server -l rdb-target -d 'The server that is to read RDB files, bases of the append-only file and payloads of DUMP. redis: Redis 7.0, or the first Redis that has all of the data (7.4 if a field of a hash expires); redis-7.2, redis-8 and valkey-9: this one. What it lacks is written all the same, so that nothing is lost, and a warning of the log says that it cannot read the file. (default: redis)' -r -f -a "redis\t''
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
complete -c ember-server -l fsync -d 'Whether a write to a store is durable before it is acknowledged (appendfsync always), or when the operating system sees fit (appendfsync no). (default: yes)' -r
complete -c ember-server -l replicaof -l slaveof -d 'The primary to replicate: its host and port. At run time the command REPLICAOF changes it. (default: empty) Also --slaveof.' -r
complete -c ember-server -l masterauth -l primaryauth -d 'The password that a replica shows to its primary. (default: empty) Also --primaryauth.' -r
complete -c ember-server -l masteruser -l primaryuser -d 'The user that a replica is to its primary; without one it shows the password alone. (default: empty) Also --primaryuser.' -r
complete -c ember-server -l bind-source-addr -d 'The address that the connection to a primary comes from, where that is possible. (default: empty)' -r
complete -c ember-server -l replica-serve-stale-data -l slave-serve-stale-data -d 'Whether a replica answers while it has no connection to its primary. (default: yes) Also --slave-serve-stale-data.' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l replica-read-only -l slave-read-only -d 'Whether a replica refuses writes of its clients. (default: yes) Also --slave-read-only.' -r -f -a "yes\t''"
complete -c ember-server -l replica-apply -d 'How a replica applies what its primary sends: on all cores, each key in order and each transaction whole, or on one, so that readers never see a later write without all before it. (default: serial)' -r -f -a "parallel\t''
serial\t''"
complete -c ember-server -l replica-ignore-maxmemory -l slave-ignore-maxmemory -d 'Whether a replica leaves eviction to its primary. (default: yes) Also --slave-ignore-maxmemory.' -r -f -a "yes\t''"
complete -c ember-server -l replica-lazy-flush -l slave-lazy-flush -d 'Whether a replica frees its old data set in the background when it gets a new one. (default: no) Also --slave-lazy-flush.' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l replica-announced -d 'Whether Sentinel sees this replica. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l replica-ignore-disk-write-errors -d 'Whether a replica goes on when it cannot write to its disk. No effect: a replica whose append-only file cannot be written applies nothing until it can. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l replica-priority -l slave-priority -d 'Which replica Sentinel promotes first: the one with the lowest number; 0 for never. (default: 100) Also --slave-priority.' -r
complete -c ember-server -l replica-announce-ip -l slave-announce-ip -d 'The address that a replica reports to its primary; empty for the one that it connects from. (default: empty) Also --slave-announce-ip.' -r
complete -c ember-server -l replica-announce-port -l slave-announce-port -d 'The port that a replica reports to its primary; 0 for the real one. (default: 0) Also --slave-announce-port.' -r
complete -c ember-server -l repl-diskless-sync -d 'Whether replicas get a copy of the data while it is made, or when it is whole. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l repl-diskless-sync-delay -d 'For how many seconds a primary waits for more replicas before it copies its data set for them. (default: 1)' -r
complete -c ember-server -l repl-diskless-sync-max-replicas -d 'With how many replicas it does not wait any longer; 0 for any number. (default: 0)' -r
complete -c ember-server -l repl-diskless-load -d 'How a replica loads the data of its primary: directly from the link, without a file, replacing its own data. (default: disabled)' -r -f -a "disabled\t''
on-empty-db\t''
flush-before-load\t''"
complete -c ember-server -l repl-disable-tcp-nodelay -d 'Whether fewer and larger packets go to replicas, later. For replicas that come from now on. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l repl-ping-replica-period -l repl-ping-slave-period -d 'Every how many seconds a primary sends PING to its replicas. (default: 10) Also --repl-ping-slave-period.' -r
complete -c ember-server -l repl-timeout -d 'After how many seconds of silence primary and replica take their connection for broken. (default: 60)' -r
complete -c ember-server -l repl-backlog-size -d 'The size of the replication stream kept in memory for replicas that reconnect. (default: 16mb)' -r
complete -c ember-server -l repl-backlog-spill -d 'The size of the stream kept beyond that, in files without names, while a connected or disconnected replica still needs it. With 0 it is kept in memory for connected replicas, as far as client-output-buffer-limit replica allows. (default: 1gb)' -r
complete -c ember-server -l repl-backlog-ttl -d 'The seconds for which the stream is kept without replicas; 0 for ever. (default: 3600)' -r
complete -c ember-server -l min-replicas-to-write -l min-slaves-to-write -d 'Without this many replicas a primary refuses writes. (default: 0) Also --min-slaves-to-write.' -r
complete -c ember-server -l min-replicas-max-lag -l min-slaves-max-lag -d 'How many seconds ago those replicas must have been heard. (default: 10) Also --min-slaves-max-lag.' -r
complete -c ember-server -l sync-replicas -d 'The number of replicas that must confirm a write before its reply; with fewer good replicas it is refused. (default: 0)' -r
complete -c ember-server -l sync-level -d 'Where those replicas must have it: in memory, or on disk, in their append-only files. (default: memory)' -r -f -a "memory\t''
disk\t''"
complete -c ember-server -l sync-timeout -d 'The milliseconds without their confirmation after which a client\'s connection is closed, because the outcome of its write is unknown. (default: 5000)' -r
complete -c ember-server -l rdb-del-sync-files -d 'Whether RDB files that were written for replication only are removed. No effect: copies of the data are in files without names, which are gone by themselves. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l propagation-error-behavior -d 'What happens when a command from the primary or a file fails. No effect: a command of the primary that fails stops the link. (default: ignore)' -r -f -a "ignore\t''
panic\t''
panic-on-replicas\t''"
complete -c ember-server -l tls-replication -d 'Whether a replica speaks TLS with its primary, whose certificate must be of an authority of tls-ca-cert-file or tls-ca-cert-dir and for the host that replicaof names. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l tls-client-cert-file -d 'The certificate that a replica shows to its primary; empty for that of tls-cert-file. (default: empty)' -r -F
complete -c ember-server -l tls-client-key-file -d 'The private key of that certificate. (default: empty)' -r -F
complete -c ember-server -l tls-client-key-file-pass -d 'The password of that key. (default: empty)' -r
complete -c ember-server -l replica-full-sync-buffer-limit -d 'How much of what the primary sends during a full synchronization a replica keeps; 0 for the limit of client-output-buffer-limit. No effect: the primary keeps what follows a copy of its data. (default: 0)' -r
complete -c ember-server -l dual-channel-replication-enabled -d 'Whether the data set of a full synchronization comes over a connection of its own. No effect: data and stream come over one connection. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l repl-mptcp -d 'Whether a replica speaks Multipath TCP with its primary. No effect: the link is TCP. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-enabled -d 'Whether the server is a node of a cluster. (default: no)' -r -f -a "no\t''"
complete -c ember-server -l cluster-config-file -d 'The file in which a node keeps what it knows of the others. No effect: cluster mode is not available in this version. (default: nodes.conf)' -r
complete -c ember-server -l cluster-node-timeout -d 'After how many milliseconds without an answer a node is taken for down. No effect: cluster mode is not available in this version. (default: 15000)' -r
complete -c ember-server -l cluster-port -d 'The port for other nodes; 0 for that of clients and 10000. No effect: cluster mode is not available in this version. (default: 0)' -r
complete -c ember-server -l cluster-announce-ip -d 'The address that a node announces to the others. No effect: cluster mode is not available in this version. (default: empty)' -r
complete -c ember-server -l cluster-announce-port -d 'The port for clients that a node announces to the others. No effect: cluster mode is not available in this version. (default: 0)' -r
complete -c ember-server -l cluster-announce-tls-port -d 'The port for clients with TLS that a node announces to the others. No effect: cluster mode is not available in this version. (default: 0)' -r
complete -c ember-server -l cluster-announce-bus-port -d 'The port for nodes that a node announces to the others. No effect: cluster mode is not available in this version. (default: 0)' -r
complete -c ember-server -l cluster-announce-hostname -d 'The host name that a node announces to the others. No effect: cluster mode is not available in this version. (default: empty)' -r
complete -c ember-server -l cluster-announce-human-nodename -d 'The name of a node in logs. No effect: cluster mode is not available in this version. (default: empty)' -r
complete -c ember-server -l cluster-preferred-endpoint-type -d 'The form in which clients receive the address of a node. No effect: cluster mode is not available in this version. (default: ip)' -r -f -a "ip\t''
hostname\t''
unknown-endpoint\t''"
complete -c ember-server -l cluster-migration-barrier -d 'How many replicas a primary keeps when one goes to a primary without any. No effect: cluster mode is not available in this version. (default: 1)' -r
complete -c ember-server -l cluster-allow-replica-migration -d 'Whether replicas go to primaries without any. No effect: cluster mode is not available in this version. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-require-full-coverage -d 'Whether a cluster with slots that no node serves refuses everything. No effect: cluster mode is not available in this version. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-replica-validity-factor -l cluster-slave-validity-factor -d 'How old the data of a replica may be for it to become a primary. No effect: cluster mode is not available in this version. (default: 10) Also --cluster-slave-validity-factor.' -r
complete -c ember-server -l cluster-replica-no-failover -l cluster-slave-no-failover -d 'Whether a replica never becomes a primary by itself. No effect: cluster mode is not available in this version. (default: no) Also --cluster-slave-no-failover.' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-allow-reads-when-down -d 'Whether a node answers reads while the cluster is down. No effect: cluster mode is not available in this version. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-allow-pubsubshard-when-down -d 'Whether a node serves its shard channels while the cluster is down. No effect: cluster mode is not available in this version. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-link-sendbuf-limit -d 'Above how many bytes that wait the connection to another node is closed; 0 for never. No effect: cluster mode is not available in this version. (default: 0)' -r
complete -c ember-server -l tls-cluster -d 'Whether nodes speak TLS with each other. No effect: cluster mode is not available in this version. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-announce-client-ipv4 -d 'The address that clients receive over IPv4. No effect: cluster mode is not available in this version. (default: empty)' -r
complete -c ember-server -l cluster-announce-client-ipv6 -d 'The address that clients receive over IPv6. No effect: cluster mode is not available in this version. (default: empty)' -r
complete -c ember-server -l cluster-announce-client-port -d 'The port that clients receive. No effect: cluster mode is not available in this version. (default: 0)' -r
complete -c ember-server -l cluster-announce-client-tls-port -d 'The port that clients with TLS receive. No effect: cluster mode is not available in this version. (default: 0)' -r
complete -c ember-server -l cluster-blacklist-ttl -d 'For how many seconds a node that was forgotten is not added again. No effect: cluster mode is not available in this version. (default: 60)' -r
complete -c ember-server -l cluster-config-save-behavior -d 'Whether a node ends when it cannot write its file. No effect: cluster mode is not available in this version. (default: sync)' -r -f -a "sync\t''
best-effort\t''"
complete -c ember-server -l cluster-databases -d 'How many databases a node has. No effect: cluster mode is not available in this version. (default: 1)' -r
complete -c ember-server -l cluster-manual-failover-timeout -d 'After how many milliseconds a failover that was asked for is given up. No effect: cluster mode is not available in this version. (default: 5000)' -r
complete -c ember-server -l cluster-slot-stats-enabled -d 'Whether what each slot costs is counted. No effect: cluster mode is not available in this version. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l cluster-slot-migration-log-max-len -d 'How many migrations of slots are remembered. No effect: cluster mode is not available in this version. (default: 1000)' -r
complete -c ember-server -l slot-migration-max-failover-repl-bytes -d 'With how many bytes left to be sent a migration of slots comes to its end; -1 for any number. No effect: cluster mode is not available in this version. (default: 0)' -r
complete -c ember-server -l cluster-compatibility-sample-ratio -d 'The percentage of commands that are checked for what a cluster does not allow. No effect: cluster mode is not available in this version. (default: 0)' -r
complete -c ember-server -l always-show-logo -d 'Whether a logo stands in the log. No effect: there is no logo. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l io-threads -d 'How many threads read and write. No effect: workers read, run and write, one for each core: shards is their number. (default: 1)' -r
complete -c ember-server -l io-threads-do-reads -d 'Whether those threads also read. No effect: workers read, run and write, one for each core: shards is their number. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l disable-thp -d 'Whether the process goes without huge pages. No effect: nothing forks, so huge pages are never copied and are wanted. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l jemalloc-bg-thread -d 'Whether a thread of the allocator gives memory back to the system. No effect: it always does. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l dynamic-hz -d 'Whether background work is done more often with many clients. No effect: each worker has its share of the background work. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l activerehashing -d 'Whether tables grow in the background too. No effect: tables grow and shrink a group at a time, as keys come and go. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l aof-rewrite-incremental-fsync -d 'Whether a rewritten AOF is made durable a part at a time. No effect: a file is made durable once, when it is complete. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l rdb-save-incremental-fsync -d 'Whether an RDB file is made durable a part at a time. No effect: a file is made durable once, when it is complete. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l rdbchecksum -d 'Whether RDB files end with a checksum, which is compared when they are read. No effect: RDB files always end with a checksum, which takes no time to speak of. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l sanitize-dump-payload -d 'Whether RESTORE checks a whole value before it is used. No effect: values of RESTORE are always checked in full, for every client. (default: no)' -r -f -a "no\t''
yes\t''
clients\t''"
complete -c ember-server -l maxmemory-eviction-tenacity -d 'How long one round of eviction may take. No effect: keys are evicted until there is room, before the command that needs it runs. (default: 10)' -r
complete -c ember-server -l crash-log-enabled -d 'Whether a crash is logged. No effect: a crash ends the process with a message and the system\'s core dump. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l crash-memcheck-enabled -d 'Whether memory is tested after a crash. No effect: a crash ends the process with a message and the system\'s core dump. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l enable-module-command -d 'Which clients may use MODULE: none, all, or those on this machine. No effect: there are no modules. (default: no)' -r -f -a "no\t''
yes\t''
local\t''"
complete -c ember-server -l ignore-warnings -d 'Which warnings of the start do not stop the server. No effect: nothing here stops the server with a warning. (default: empty)' -r
complete -c ember-server -l locale-collate -d 'The locale in whose order SORT and Lua compare texts. No effect: texts are compared byte by byte. (default: empty)' -r
complete -c ember-server -l socket-mark-id -d 'The mark of sockets for the system\'s filters; 0 for none. No effect: sockets are not marked in this version. (default: 0)' -r
complete -c ember-server -l tls-dh-params-file -d 'The parameters of a Diffie-Hellman exchange of keys. No effect: keys are exchanged over elliptic curves only. (default: empty)' -r
complete -c ember-server -l prefetch-batch-max-size -d 'How many keys are fetched into the cache ahead. No effect: the keys of all commands that have arrived together are fetched ahead. (default: 16)' -r
complete -c ember-server -l extended-redis-compatibility -d 'Whether the server calls itself Redis where clients look. No effect: the server always answers as Redis. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l hash-seed -d 'From what the key of the tables\' hash function is made. No effect: tables are keyed with a new random number at each start. (default: empty)' -r
complete -c ember-server -l mptcp -d 'Whether clients may speak Multipath TCP. No effect: there is no Multipath TCP in this version. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l rdma-port -d 'The port for connections over RDMA. No effect: there are no connections over RDMA in this version. (default: 0)' -r
complete -c ember-server -l rdma-bind -d 'The addresses for connections over RDMA. No effect: there are no connections over RDMA in this version. (default: empty)' -r
complete -c ember-server -l rdma-rx-size -d 'The size of a connection\'s buffer over RDMA. No effect: there are no connections over RDMA in this version. (default: 1048576)' -r
complete -c ember-server -l rdma-completion-vector -d 'Which completion vector connections over RDMA use; -1 for any. No effect: there are no connections over RDMA in this version. (default: -1)' -r
complete -c ember-server -l hide-user-data-from-log -d 'Whether keys and values are left out of the log. No effect: the log names no keys and no values, but where a file that is loaded is broken. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l aof-disable-auto-gc -d 'Whether old files of the AOF stay. No effect: files of the AOF are removed as soon as no manifest names them. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l loading-process-events-interval-bytes -d 'After how many bytes of a file clients are answered while it is loaded. No effect: workers answer while a file is loaded. (default: 2097152)' -r
complete -c ember-server -l cluster-ping-interval -d 'Every how many milliseconds nodes send PING to each other; 0 for the usual time. No effect: cluster mode is not available in this version. (default: 0)' -r
complete -c ember-server -l rdb-key-save-delay -d 'How many microseconds each key takes longer when an RDB file is written; if negative, how many keys take one microsecond longer. A key takes ten seconds at most. (default: 0)' -r
complete -c ember-server -l key-load-delay -d 'The same for each key and command when a file is read. (default: 0)' -r
complete -c ember-server -l tiered-goal -d 'From which percentage of maxmemory on values are sent away; 0 sends all away that may go, all the time. (default: 90)' -r
complete -c ember-server -l use-exit-on-panic -d 'Whether a failed assertion ends the process without a core dump. No effect: a panic always aborts the process. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l watchdog-period -d 'The milliseconds after which a running call is logged; 0 for never. No effect: the slow log and LATENCY record slow calls. (default: 0)' -r
complete -c ember-server -s h -l help -d 'Prints all parameters'
complete -c ember-server -s v -l version -d 'Prints the version'
