# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ember_cli_global_optspecs
    string join \n h= p= s= u= a/pass= user= askpass no-auth-warning n= 2 3 c verbose tls sni= cacert= cacertdir= insecure cert= key= r= i= x X= quoted-input e eval= raw no-raw csv json quoted-json d= D= show-pushes= pipe pipe-timeout= scan pattern= quoted-pattern= count= bigkeys memkeys memkeys-samples= keystats keystats-samples= top= hotkeys stat watch since= latency latency-history latency-dist intrinsic-latency= lru-test= rdb= replica functions-rdb= help v/version
end

function __fish_ember_cli_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_ember_cli_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_ember_cli_using_subcommand
    set -l cmd (__fish_ember_cli_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c ember-cli -n "__fish_ember_cli_needs_command" -s h -d 'Server host name or address' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s p -d 'Server port' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s s -d 'Server unix socket, instead of host and port' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s u -d 'Server as a URI: redis://[[USER]:PASSWORD@][HOST][:PORT][/DATABASE]; rediss:// for TLS' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s a -l pass -d 'Password. Other users may see it on the command line; prefer the environment variable EMBERCLI_AUTH' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l user -d 'User name; requires a password' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s n -d 'Database number' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l sni -d 'Server name for SNI, which the server\'s certificate must contain' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l cacert -d 'File with trusted CA certificates. Default: those of the system' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l cacertdir -d 'Directory with trusted CA certificates: its files ending in .pem, .crt or .0 to .9' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l cert -d 'Client certificate file' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l key -d 'Key file of the client certificate' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s r -d 'Run the command this many times; -1 means forever' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s i -d 'Seconds between repetitions of -r, --scan, --stat and other modes; for --latency, the duration of a measurement' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s X -d 'Replace this word in the command by an argument from standard input' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l eval -d 'Run the script in this file with EVAL; the arguments are its keys, then, after a comma, its other arguments' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s d -d 'Delimiter between elements in raw output' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s D -d 'Delimiter after each reply in raw output' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l show-pushes -d 'Show RESP3 push messages; the default is yes on a terminal' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l pipe-timeout -d 'With --pipe: exit if no reply arrives for this many seconds after the last request; 0 means never' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l pattern -d 'Only keys that match this pattern; for --scan, --bigkeys, --memkeys, --keystats and --hotkeys' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l quoted-pattern -d 'Like --pattern, parsed as a quoted string' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l count -d 'COUNT of each SCAN call' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l memkeys-samples -d 'Like --memkeys, sampling this many elements of each key; 0 means all' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l keystats-samples -d 'Like --keystats, sampling this many elements of each key; 0 means all' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l top -d 'With --keystats: number of keys to list' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l since -d 'With --watch: resume after this version' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l intrinsic-latency -d 'Measure for this many seconds how long this machine delays a running program; connects to no server' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l lru-test -d 'Test the server as a cache of this many keys, the last fifth of which gets most of the requests, and report the hit rate' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l rdb -d 'Copy the server\'s data to a local RDB file; - means standard output' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l functions-rdb -d 'Like --rdb, for functions only' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l askpass -d 'Prompt for the password'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l no-auth-warning -d 'Do not warn about a password on the command line'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s 2 -d 'Use RESP2'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s 3 -d 'Use RESP3'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s c -d 'Follow cluster redirections (MOVED, ASK)'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l verbose -d 'Report each connection and how long it took, on standard error'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l tls -d 'Connect with TLS'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l insecure -d 'Accept any server certificate. Attackers on the network can then read and change all data'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s x -d 'Read the last argument from standard input'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l quoted-input -d 'Parse arguments as quoted strings: \\"\\\\xff\\" is one byte'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s e -d 'Exit with 1 if the reply is an error'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l raw -d 'Print replies as raw bytes; the default if the output is not a terminal'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l no-raw -d 'Print formatted replies even if the output is not a terminal'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l csv -d 'Print replies as comma-separated values'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l json -d 'Print replies as JSON; uses RESP3 if the server supports it, unless -2 is given'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l quoted-json -d 'Print replies as ASCII JSON, with the escapes of quoted strings'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l pipe -d 'Send raw requests from standard input, as fast as the server accepts them'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l scan -d 'List all keys'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l bigkeys -d 'Find the largest key of each type, by number of elements'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l memkeys -d 'Find the largest key of each type, by memory'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l keystats -d 'Report the keys that take most memory, and memory, elements and sizes of all keys by type'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l hotkeys -d 'Find the most frequently used keys; requires an LFU eviction policy'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l stat -d 'Print a line of statistics every second'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l watch -d 'Watch the command: print a line for each new result, with its version; reconnects and resumes after a lost connection'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l latency -d 'Measure the round-trip time of PING'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l latency-history -d 'Like --latency, with a new line every 15 seconds (-i)'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l latency-dist -d 'Like --latency, as a coloured spectrum, with a new line every second (-i)'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l replica -d 'Act as a replica and print the commands it receives, as comma-separated values'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l help -d 'Print this help'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s v -l version -d 'Print the version'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -a "benchmark" -d 'Measure the performance of a server'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -a "check" -d 'Check data files for damage, and show what they contain'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -a "repair" -d 'Copy the intact part of a damaged file. The original is not modified'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -a "convert" -d 'Copy an RDB file or AOF, encrypted or unencrypted'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -a "restore" -d 'Write the data set of an AOF at an earlier time to an RDB file. The AOF is not modified'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s h -d 'Server host name or address' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s p -d 'Server port' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s s -d 'Server unix socket, instead of host and port' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s u -d 'Server as a URI: redis://[[USER]:PASSWORD@][HOST][:PORT][/DATABASE]; rediss:// for TLS' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s a -l pass -d 'Password. Other users may see it on the command line; prefer the environment variable EMBERCLI_AUTH' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l user -d 'User name; requires a password' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l db -l dbnum -d 'Database number' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l compare -d 'Other servers (HOST:PORT, comma-separated) to measure in turn with the first one, for comparison' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l rounds -d 'With --compare: number of runs of each test on each server' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l server-program -d 'With --matrix stores: server program (default: ember-server in the directory of this program)' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l folder -d 'With --matrix stores: folder for the stores (default: the system\'s temporary folder)' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l sni -d 'Server name for SNI, which the server\'s certificate must contain' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l cacert -d 'File with trusted CA certificates. Default: those of the system' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l cacertdir -d 'Directory with trusted CA certificates: its files ending in .pem, .crt or .0 to .9' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l cert -d 'Client certificate file' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l key -d 'Key file of the client certificate' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s n -d 'Number of requests per test' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l duration -d 'Duration of each test in seconds, instead of a number of requests' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s c -d 'Number of connections' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s P -d 'Number of requests that a connection sends at a time (pipeline)' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l threads -d 'Number of load threads, among which the connections are divided' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l rate -d 'Send this many requests per second, independent of the server\'s speed. Latency counts from when a request was due, including the wait for a free connection, so server pauses are measured in full' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l warm-up -d 'Run each test for this many seconds before measuring' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s k -d '0: open a new connection for each request, or each group of -P requests; latency includes connecting' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l watch -d 'Watch this many keys over all connections and report the memory per watch; change --rate keys per second, and report the latency of the last notification of each change; for --duration, or until Ctrl-C. -P keys are written and watched at a time' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l timeout -d 'Exit if no reply arrives for this many seconds' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s t -d 'Tests to run, comma-separated; default: all' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l ratio -d 'Mix SET and GET in this ratio, for example 1:10' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l command -d 'Measure this command; __key__ is replaced by a key, __rand_int__ by its number, __data__ by a value' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s d -d 'Value size in bytes' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s r -d 'Number of distinct keys (or elements of sets, hashes and sorted sets). Default: one' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l key-pattern -d 'Distribution of requests over the keys' -r -f -a "uniform\t'All keys equally often'
zipf\t'A few keys very often: the k-th key in proportion to 1/k^0.99'
gaussian\t'Keys in the middle more often: one standard deviation is a sixth of the keys'
sequential\t'Keys in order'"
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l ttl -d 'Expiry of keys written by SET, in seconds' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l report -d 'Also write an HTML page with plots. Without --compare each test is then also measured briefly with other numbers of connections and other pipelines' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l matrix -d 'Print SET and GET in the table format of KVBench: -n requests (100000) on -r keys (as many as requests), with 1 client, 256 clients, and 256 clients with pipelines of 256; for the running server, or for all stores, each with a new server' -r -f -a "server\t'The running server'
stores\t'All stores of ember, and Redis if it is installed, next to KVBench\'s own figures'"
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l askpass -d 'Prompt for the password'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l no-auth-warning -d 'Do not warn about a password on the command line'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s 3 -d 'Use RESP3'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l tls -d 'Connect with TLS'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l insecure -d 'Accept any server certificate. Attackers on the network can then read and change all data'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s l -d 'Repeat the tests until Ctrl-C'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s I -d 'Open idle connections and report those that the server closes; until Ctrl-C'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l distinct-seeds -d 'Use different random seeds in each run. By default each connection has a fixed seed, so that runs are repeatable'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s q -d 'Print one line per test'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l csv -d 'Print comma-separated values; the first columns are those of redis-benchmark'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l json -d 'Print JSON'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l help -d 'Print this help'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand check" -l opened-as -d 'The store of which the path is a copy that may be opened' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand check" -l encryption-key-file -d 'File with the keys of encrypted files: 32 bytes, or lines of 64 hexadecimal digits or base64. Default: the keys in the environment variable EMBER_ENCRYPTION_KEY, if set' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand repair" -s o -l output -d 'Target of the copy: a new file, or for an AOF with a manifest a directory without an AOF' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand repair" -l until -d 'Leave out AOF commands with a timestamp after the second of this time: Unix time in seconds or milliseconds, ISO 8601 (2026-11-26T10:00:00Z; UTC without an offset), a time before now (-90s, -5m, -1h, -2d, -1w, -1y), or now' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand repair" -l encryption-key-file -d 'File with the keys of encrypted files: 32 bytes, or lines of 64 hexadecimal digits or base64. Default: the keys in the environment variable EMBER_ENCRYPTION_KEY, if set' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand convert" -s o -l output -d 'Target of the copy: a new file, or for an AOF with a manifest a directory without an AOF' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand convert" -l to -d 'Form of the copy. Encrypted files are encrypted again, with the first of the keys. Default: the form of the original' -r -f -a "encrypted\t'Encrypted'
plain\t'Not encrypted'"
complete -c ember-cli -n "__fish_ember_cli_using_subcommand convert" -l for -d 'The server that will read the copy' -r -f -a "redis-7.2\t'Redis 7.2'
redis-8\t'Redis 7.4 and 8'
valkey-9\t'Valkey 9'"
complete -c ember-cli -n "__fish_ember_cli_using_subcommand convert" -l encryption-key-file -d 'File with the keys of encrypted files: 32 bytes, or lines of 64 hexadecimal digits or base64. Default: the keys in the environment variable EMBER_ENCRYPTION_KEY, if set' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand convert" -l leave-out -d 'Leave out data that the server does not support: expiries of hash fields, vector sets, vector indexes, JSON documents, sketches. Without this option such data is an error that names the keys'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand restore" -l to -d 'The time: Unix time in seconds or milliseconds, ISO 8601 (2026-11-26T10:00:00Z; UTC without an offset), a time before now (-90s, -5m, -1h, -2d, -1w, -1y), or now. The data set is that of the end of this second' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand restore" -s o -l out -d 'The new RDB file' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand restore" -l dir -d 'The data directory of the server, the directory of its AOF, or the manifest of the AOF' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand restore" -l databases -d 'The number of databases of the server (`databases`)' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand restore" -l encryption-key-file -d 'File with the keys of encrypted files: 32 bytes, or lines of 64 hexadecimal digits or base64. Default: the keys in the environment variable EMBER_ENCRYPTION_KEY, if set' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand restore" -l dry-run -d 'Read all files that are needed and report the result, but write no file'
