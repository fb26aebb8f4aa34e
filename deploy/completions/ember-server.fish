complete -c ember-server -s c -l config -d 'The same as FILE' -r -F
complete -c ember-server -l bind -l host -d 'The addresses to listen on: IP addresses, host names, * (all IPv4) or ::* (all IPv6). A - before an address makes it no error when the machine does not have it. Without any address there is no TCP listener. (default: 127.0.0.1 -::1) Also --host.' -r
complete -c ember-server -s p -l port -d 'The TCP port to listen on; 0 for no TCP listener. (default: 6379)' -r
complete -c ember-server -l tcp-backlog -d 'How many connections may wait to be accepted; the kernel\'s somaxconn limits it further. (default: 511)' -r
complete -c ember-server -l unixsocket -d 'The path of a Unix socket to listen on; empty for none. (default: empty)' -r -F
complete -c ember-server -l unixsocketperm -d 'The permissions of the Unix socket; 0 leaves them to the umask. (default: 0)' -r
complete -c ember-server -l timeout -d 'Seconds after which an idle connection is closed; 0 for never. (default: 0)' -r
complete -c ember-server -l tcp-keepalive -d 'Seconds between TCP keep-alive probes on an idle connection; 0 for none. (default: 300)' -r
complete -c ember-server -l maxclients -d 'How many clients may be connected at a time. (default: 10000)' -r
complete -c ember-server -l protected-mode -d 'Whether only clients on this machine are served while there is no password. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l requirepass -d 'The password of the default user; empty for none. On the command line every user of the machine can read it: prefer requirepass-file. (default: empty)' -r
complete -c ember-server -l requirepass-file -d 'A file whose first line is the password, read once at the start; empty for none. The later of requirepass and this one counts. (default: empty)' -r -F
complete -c ember-server -l aclfile -d 'A file with users, read at the start and by ACL LOAD, written by ACL SAVE; empty for none. Users stand there or in lines user of the configuration file, not in both. (default: empty)' -r -F
complete -c ember-server -l acl-pubsub-default -d 'Which channels of publish and subscribe new users may use. (default: resetchannels)' -r -f -a "allchannels\t''
resetchannels\t''"
complete -c ember-server -l acllog-max-len -d 'How many denials ACL LOG keeps. (default: 128)' -r
complete -c ember-server -l enable-debug-command -d 'Who may call DEBUG: nobody, everybody, or clients on this machine. (default: no)' -r -f -a "no\t''
yes\t''
local\t''"
complete -c ember-server -l tls-port -d 'The TCP port for connections with TLS, on the addresses of bind; 0 for none. With port 0 there are no others. (default: 0)' -r
complete -c ember-server -l tls-cert-file -d 'The server\'s certificate and those it depends on, in the PEM format. Each CONFIG SET of a parameter of TLS, to the same value too, reads all files again, for connections to come. (default: empty)' -r -F
complete -c ember-server -l tls-key-file -d 'The private key of that certificate, in the PEM format and not encrypted. (default: empty)' -r -F
complete -c ember-server -l tls-ca-cert-file -d 'The certificates of the authorities whose clients are trusted, in the PEM format. (default: empty)' -r -F
complete -c ember-server -l tls-ca-cert-dir -d 'A directory of files with more such certificates. (default: empty)' -r -F
complete -c ember-server -l tls-auth-clients -d 'Whether clients must show a certificate (yes), may show one (optional) or are not asked for one. (default: yes)' -r -f -a "no\t''
yes\t''
optional\t''"
complete -c ember-server -l tls-protocols -d 'The versions of TLS that are spoken; empty for both. (default: empty)' -r
complete -c ember-server -l tls-ciphers -d 'The cipher suites of TLS 1.2, the preferred ones first; empty for all. (default: empty)' -r
complete -c ember-server -l tls-ciphersuites -d 'The cipher suites of TLS 1.3, the preferred ones first; empty for all. (default: empty)' -r
complete -c ember-server -l tls-prefer-server-ciphers -d 'Whether the server\'s order of cipher suites counts, not the client\'s. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l tls-session-caching -d 'Whether clients may resume a session with a shorter handshake. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l tls-session-cache-size -d 'How many sessions are kept for that. (default: 20480)' -r
complete -c ember-server -l tls-session-cache-timeout -d 'For how many seconds a session is kept. (default: 300)' -r
complete -c ember-server -l shards -d 'How many worker threads serve clients; 0 for one per core. (default: 0)' -r
complete -c ember-server -l concurrent -d 'Whether the worker which reads a command also runs it (yes), or forwards it to the worker which owns the key (no). (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l databases -d 'How many databases SELECT can choose from. (default: 16)' -r
complete -c ember-server -l hash-function -d 'The hash function of keys and of members and fields. siphash is slower and withstands clients which choose keys that collide. (default: rapidhash)' -r -f -a "rapidhash\t''
siphash\t''"
complete -c ember-server -l hz -d 'How often per second background work runs: expiry of keys, idle connections, statistics. (default: 10)' -r
complete -c ember-server -l maxmemory -l max-memory -d 'How much memory the data and what clients make the server keep may take before keys are evicted or writes refused; 0 for no limit. (default: 0) Also --max-memory.' -r
complete -c ember-server -l maxmemory-policy -l eviction-policy -d 'Which keys are evicted at maxmemory. (default: noeviction) Also --eviction-policy.' -r -f -a "volatile-lru\t''
volatile-lfu\t''
volatile-random\t''
volatile-ttl\t''
allkeys-lru\t''
allkeys-lfu\t''
allkeys-random\t''
noeviction\t''"
complete -c ember-server -l maxmemory-samples -d 'How many keys are looked at to choose one to evict. (default: 5)' -r
complete -c ember-server -l lfu-log-factor -d 'How much slower the access counter of the LFU policies grows the larger it is. (default: 10)' -r
complete -c ember-server -l lfu-decay-time -d 'Minutes after which the access counter of the LFU policies is decremented; 0 for never. (default: 1)' -r
complete -c ember-server -l lazyfree-lazy-server-del -d 'Whether values which a command overwrites are freed in the background. (default: no)' -r -f -a "no\t''"
complete -c ember-server -l lazyfree-lazy-user-del -d 'Whether DEL frees in the background, as UNLINK does. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l lazyfree-lazy-user-flush -d 'Whether FLUSHALL and FLUSHDB free in the background when they say neither SYNC nor ASYNC. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l hash-max-listpack-entries -l hash-max-ziplist-entries -d 'Up to how many fields a hash is kept in one packed buffer. (default: 512) Also --hash-max-ziplist-entries.' -r
complete -c ember-server -l hash-max-listpack-value -l hash-max-ziplist-value -d 'Up to how many bytes the longest of a hash\'s fields and values may have in one packed buffer. (default: 64) Also --hash-max-ziplist-value.' -r
complete -c ember-server -l set-max-intset-entries -d 'Up to how many members a set of integers is kept as an array of them. (default: 512)' -r
complete -c ember-server -l set-max-listpack-entries -d 'Up to how many members a set is kept in one packed buffer. (default: 128)' -r
complete -c ember-server -l set-max-listpack-value -d 'Up to how many bytes the longest of a set\'s members may have in one packed buffer. (default: 64)' -r
complete -c ember-server -l zset-max-listpack-entries -l zset-max-ziplist-entries -d 'Up to how many members a sorted set is kept in one packed buffer. (default: 128) Also --zset-max-ziplist-entries.' -r
complete -c ember-server -l zset-max-listpack-value -l zset-max-ziplist-value -d 'Up to how many bytes the longest of a sorted set\'s members may have in one packed buffer. (default: 64) Also --zset-max-ziplist-value.' -r
complete -c ember-server -l list-max-listpack-size -l list-max-ziplist-size -d 'How many elements a node of a list holds, or, as -1 to -5, 4, 8, 16, 32 or 64 kb of them. (default: -2) Also --list-max-ziplist-size.' -r
complete -c ember-server -l list-compress-depth -d 'How many nodes at each end of a list are not compressed; 0 if no node is to be. It counts for nodes which are made or changed from then on. (default: 0)' -r
complete -c ember-server -l stream-node-max-bytes -d 'How many bytes a node of a stream holds; 0 for no limit. (default: 4096)' -r
complete -c ember-server -l stream-node-max-entries -d 'How many entries a node of a stream holds; 0 for no limit. (default: 100)' -r
complete -c ember-server -l hll-sparse-max-bytes -d 'Up to how many bytes a HyperLogLog is kept in its sparse form. (default: 3000)' -r
complete -c ember-server -l client-output-buffer-limit -d 'When a client which does not read its replies is disconnected: at once above hard bytes, or after seconds above soft bytes; 0 for never. The classes are normal, replica (or slave) and pubsub; a class which is not named keeps its limit. What MONITOR and client-side caching send counts against pubsub, by itself. (default: normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60)' -r
complete -c ember-server -l client-query-buffer-limit -d 'How much of a client\'s input may wait to be run before the client is disconnected. Calls queued since MULTI count, and keys, channels and names which the client makes the server keep. (default: 1gb)' -r
complete -c ember-server -l maxmemory-clients -d 'How much memory all clients may take together: requests, transactions, subscriptions, replies which wait. From there on those which take most are disconnected, but not those with CLIENT NO-EVICT; 0 for no limit. (default: 0)' -r
complete -c ember-server -l proto-max-bulk-len -d 'The longest argument of a command, and the longest string value. (default: 512mb)' -r
complete -c ember-server -l sanitize-dump-payload -d 'Whether RESTORE checks all of a value before it is used. (default: yes)' -r -f -a "yes\t''"
complete -c ember-server -l busy-reply-threshold -l lua-time-limit -d 'Milliseconds after which a script that still runs can be ended with SCRIPT KILL or FUNCTION KILL, and other clients are told that the server is busy; 0 for never. (default: 5000) Also --lua-time-limit.' -r
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
complete -c ember-server -l latency-monitor-threshold -d 'Events which take at least this many milliseconds are kept for LATENCY; 0 for none. (default: 0)' -r
complete -c ember-server -l latency-tracking -d 'Whether a histogram of latencies is kept for each command. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l latency-tracking-info-percentiles -d 'The percentiles of those latencies which INFO shows. (default: 50 99 99.9)' -r
complete -c ember-server -l metrics-port -d 'The HTTP port of /metrics (for Prometheus), /health and /ready; 0 for none. (default: 0)' -r
complete -c ember-server -l metrics-bind -d 'The addresses to listen on there, as in bind. Who reaches them can read all metrics: they name commands and count keys, but show no data. The dashboard does. (default: 127.0.0.1 -::1)' -r
complete -c ember-server -l metrics-dashboard -d 'Whether /dashboard/ is served there too: a page to look at the server and its keys, with the rights of the user who logs in. As soon as the default user needs a password, the page asks for one. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l tracking-table-max-keys -d 'Of how many keys it is noted which clients keep copies; what is beyond is told to have changed; 0 for no limit. Each shard has its share. (default: 1000000)' -r
complete -c ember-server -l notify-keyspace-events -d 'Which changes of keys are published: K on the channel of the key, E on that of the event; g generic commands, $ strings, l lists, s sets, h hashes, z sorted sets, x expired keys, e evicted keys, t streams, m reads of missing keys, n new keys, A for g$lshzxetd. (default: empty)' -r
complete -c ember-server -l loglevel -d 'The least severe messages which are logged. (default: notice)' -r -f -a "debug\t''
verbose\t''
notice\t''
warning\t''
nothing\t''"
complete -c ember-server -l logfile -d 'The file to log to; empty for the standard output. (default: empty)' -r -F
complete -c ember-server -l dir -l data-dir -d 'The directory the server works in: relative paths of logfile, pidfile and unixsocket begin here, and data is kept here. (default: .) Also --data-dir.' -r -f -a "(__fish_complete_directories)"
complete -c ember-server -l pidfile -d 'A file for the process id, removed at exit; empty for none. (default: empty)' -r -F
complete -c ember-server -l daemonize -d 'Whether the server detaches from its terminal. (default: no)' -r -f -a "no\t''"
complete -c ember-server -l supervised -d 'Which supervisor is told when the server is ready: systemd through NOTIFY_SOCKET, or auto for systemd when that variable is set. (default: no)' -r -f -a "systemd\t''
auto\t''
no\t''"
complete -c ember-server -l shutdown-timeout -d 'Seconds a shutdown may wait for clients to read their last replies. (default: 10)' -r
complete -c ember-server -l appendonly -d 'Whether every write is kept in an append-only file (AOF), from which the data set is read at the start. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l appendfsync -d 'When a write is durable: always, before it is acknowledged; everysec, within about a second; no, when the operating system sees fit. (default: everysec)' -r -f -a "always\t''
everysec\t''
no\t''"
complete -c ember-server -l appenddirname -d 'The directory in dir with the files of the AOF. (default: appendonlydir)' -r
complete -c ember-server -l appendfilename -d 'How the names of the files of the AOF begin. (default: appendonly.aof)' -r
complete -c ember-server -l aof-timestamp-enabled -d 'Whether the AOF says the time of its commands, so that it can be cut at a time. (default: no)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l aof-load-truncated -d 'Whether the server starts when the end of the AOF was lost in a crash, and cuts it there; otherwise it says so and ends. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l aof-use-rdb-preamble -d 'The base of an AOF is an RDB file. (default: yes)' -r -f -a "yes\t''"
complete -c ember-server -l auto-aof-rewrite-percentage -d 'By how much per cent the AOF must have grown since its last rewrite to be rewritten by itself; 0: never. (default: 100)' -r
complete -c ember-server -l auto-aof-rewrite-min-size -d 'An AOF below this size is not rewritten by itself. (default: 64mb)' -r
complete -c ember-server -l aof-lag-limit -d 'With appendfsync everysec: how many ms a write may stay without being durable because the disk is slow; while one is older, writes wait. (default: 2000)' -r
complete -c ember-server -l aof-wait-limit -d 'How many ms writes wait for a slow disk. After that they are refused with MISCONF until the disk has caught up. With appendfsync always a connection whose writes wait for a disk that fails is closed after this time. (default: 1000)' -r
complete -c ember-server -l dbfilename -d 'The file in dir that the data set is read from at the start, if it is there, and that is written: an RDB file as Redis has it. (default: dump.rdb)' -r
complete -c ember-server -l rdbcompression -d 'Whether strings in RDB files are packed by LZF where that makes them shorter. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l rdbchecksum -d 'Whether RDB files end with a checksum, which is compared when they are read. (default: yes)' -r -f -a "yes\t''"
complete -c ember-server -l encryption-key-file -d 'A file with the keys that files of the data set are encrypted with: 32 bytes in hexadecimal digits or base64 on each line, the current key first, then older ones. Empty for the keys of the variable EMBER_ENCRYPTION_KEY, or no encryption without it. CONFIG SET reads the file again. (default: empty)' -r -F
complete -c ember-server -l save -d 'When the data set is saved in the background by itself: after a number of seconds with a number of changes at least; one pair that is fulfilled is enough. Empty for never; SHUTDOWN then saves only if it is told to. Further lines of a file add their pairs. (default: 3600 1 300 100 60 10000)' -r
complete -c ember-server -l stop-writes-on-bgsave-error -d 'Whether writes are refused after saving in the background has failed, until it succeeds: only while there are rules in save. (default: yes)' -r -f -a "yes\t''
no\t''"
complete -c ember-server -l replicaof -l slaveof -d 'The primary to replicate. (default: empty) Also --slaveof.' -r -f -a """\t''
no one\t''"
complete -c ember-server -l cluster-enabled -d 'Whether the server is a node of a cluster. (default: no)' -r -f -a "no\t''"
complete -c ember-server -s h -l help -d 'Prints all parameters'
complete -c ember-server -s v -l version -d 'Prints the version'
