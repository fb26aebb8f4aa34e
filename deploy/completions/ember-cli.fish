# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ember_cli_global_optspecs
    string join \n h= p= s= u= a/pass= user= askpass no-auth-warning n= 2 3 c verbose tls sni= cacert= cacertdir= insecure cert= key= r= i= x X= quoted-input e eval= raw no-raw csv json quoted-json d= D= show-pushes= pipe pipe-timeout= scan pattern= quoted-pattern= count= bigkeys memkeys memkeys-samples= hotkeys stat watch since= latency latency-history latency-dist intrinsic-latency= lru-test= rdb= replica functions-rdb= help v/version
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

complete -c ember-cli -n "__fish_ember_cli_needs_command" -s h -d 'The server\'s name or address' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s p -d 'The server\'s port' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s s -d 'The server\'s unix socket; instead of host and port' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s u -d 'All of it as redis://[[USER]:PASSWORD@][HOST][:PORT][/DATABASE]; rediss:// for TLS' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s a -l pass -d 'The password. The environment variable EMBERCLI_AUTH is safer: others cannot see it' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l user -d 'The user\'s name; needs a password' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s n -d 'The number of the database' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l sni -d 'The name that the server\'s certificate has to have, and that is sent to the server' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l cacert -d 'Certificates of authorities to trust; without it those of the system' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l cacertdir -d 'A directory with such certificates: its files that end in .pem, .crt or .0 to .9' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l cert -d 'The client\'s certificate' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l key -d 'The key of the client\'s certificate' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s r -d 'Run the command this many times; -1 for ever' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s i -d 'Wait this many seconds between: with -r, --scan, --stat and others; for --latency how long it is measured' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s X -d 'Read the argument that is written as this word from standard input' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l eval -d 'Run the script in a file; the arguments are keys, and behind a comma other arguments' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s d -d 'What stands between elements in raw output' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s D -d 'What stands behind each answer in raw output' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l show-pushes -d 'Whether messages of RESP3 that nobody asked for are shown; they are on a terminal' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l pipe-timeout -d 'Give up when no answer comes for this many seconds behind the last request; 0 never' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l pattern -d 'Only keys that match; for --scan, --bigkeys, --memkeys and --hotkeys' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l quoted-pattern -d 'The same as a quoted string' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l count -d 'Ask for this many keys at once' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l memkeys-samples -d 'The same; of this many elements each, 0 for all' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l since -d 'The version that --watch begins behind' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l intrinsic-latency -d 'Measure for this many seconds how long this machine keeps a program waiting that needs nothing; no server is asked' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l lru-test -d 'Use the server as a cache of this many keys, a fifth of which are most of the use, and count the hits' -r
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l rdb -d 'Copy the data of the server into an RDB file here; - is standard output' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l functions-rdb -d 'As --rdb, of the functions alone' -r -F
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l askpass -d 'Ask for the password'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l no-auth-warning -d 'No warning for a password on the command line'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s 2 -d 'Speak RESP2'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s 3 -d 'Speak RESP3'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s c -d 'Follow the redirections of a cluster (MOVED, ASK)'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l verbose -d 'Say on standard error where connections go to, and how long they take'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l tls -d 'Connect with TLS'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l insecure -d 'Trust every server. Whoever is between can read and change everything'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s x -d 'Read the last argument from standard input'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l quoted-input -d 'Read arguments as quoted strings: \\"\\\\xff\\" is one byte'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s e -d 'Exit with 1 when the answer is an error'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l raw -d 'Bytes as they are; this is what is done when the output is no terminal'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l no-raw -d 'As on a terminal, also when the output is none'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l csv -d 'As comma-separated values'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l json -d 'As JSON; speaks RESP3 if the server does and -2 is not given'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l quoted-json -d 'As JSON in ASCII, with the escapes of quoted strings'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l pipe -d 'Send requests from standard input as they are, as fast as the server takes them'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l scan -d 'List all keys'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l bigkeys -d 'Look for the largest key of each type, by elements'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l memkeys -d 'Look for the largest key of each type, by memory'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l hotkeys -d 'Look for the keys most used; needs an LFU eviction policy'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l stat -d 'A line of statistics each second'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l watch -d 'Watch the command: a line for each new result, with its version; a lost connection goes on where it was'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l latency -d 'Measure the time an answer takes'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l latency-history -d 'The same, a new line every 15 seconds (-i)'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l latency-dist -d 'The same as a spectrum in colours, a new line every second (-i)'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l replica -d 'Show the commands that a replica of the server gets, as comma-separated values'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -l help -d 'Print this help'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -s v -l version -d 'Print the version'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -a "benchmark" -d 'Measure what a server can do'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -a "check" -d 'Say whether files are whole, and what is in them'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -a "repair" -d 'Copy what is good of a damaged file. The original is only read'
complete -c ember-cli -n "__fish_ember_cli_needs_command" -a "convert" -d 'Copy an RDB file or AOF, encrypted or plain'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s h -d 'The server\'s name or address' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s p -d 'The server\'s port' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s s -d 'The server\'s unix socket; instead of host and port' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s u -d 'All of it as redis://[[USER]:PASSWORD@][HOST][:PORT][/DATABASE]; rediss:// for TLS' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s a -l pass -d 'The password. The environment variable EMBERCLI_AUTH is safer: others cannot see it' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l user -d 'The user\'s name; needs a password' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l db -l dbnum -d 'The number of the database' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l compare -d 'Other servers, HOST:PORT with commas between, to compare with the first one, in turn' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l rounds -d 'With --compare: how often each test is run on each server' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l server-program -d 'With --matrix stores: the program of the server (default: ember-server beside this program)' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l folder -d 'With --matrix stores: the folder that stores are made in (default: that of temporary files)' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l sni -d 'The name that the server\'s certificate has to have, and that is sent to the server' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l cacert -d 'Certificates of authorities to trust; without it those of the system' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l cacertdir -d 'A directory with such certificates: its files that end in .pem, .crt or .0 to .9' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l cert -d 'The client\'s certificate' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l key -d 'The key of the client\'s certificate' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s n -d 'Requests in each test' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l duration -d 'Measure for this many seconds instead of a number of requests' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s c -d 'Connections' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s P -d 'Requests that a connection sends at once' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l threads -d 'Threads that make the load; the connections are divided among them' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l rate -d 'Requests a second, whatever the server makes of them. Latency counts from when a request was due, also where it had to wait for a free connection: what a server\'s pause costs is seen in full' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l warm-up -d 'Load for this many seconds before each test that is not counted' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s k -d '0: a new connection for each request, or for each -P of them; latency counts from before it is made' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l watch -d 'Have the connections watch so many keys together, tell what a watch takes, change --rate of them a second, and tell how late the last of those who watch one is told; for --duration, or until Ctrl-C. -P keys are written and watched at once' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l timeout -d 'Give up when no answer comes for this many seconds' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s t -d 'Tests, with commas between; without it all of them' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l ratio -d 'SET and GET mixed in this ratio: 1:10' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l command -d 'A command of your own; __key__ is a key, __rand_int__ its number alone, __data__ a value' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s d -d 'Bytes of each value' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s r -d 'Different keys (or elements of sets, hashes and sorted sets). Without it there is one' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l key-pattern -d 'Which of the keys are used how often' -r -f -a "uniform\t'All alike'
zipf\t'A few are used very often: the k-th key in proportion to 1/k^0.99'
gaussian\t'Those in the middle more often: a sixth of the keys is one standard deviation'
sequential\t'One behind the other'"
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l ttl -d 'Keys that SET writes expire after this many seconds' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l report -d 'Write a page with plots as well. Each test is then also measured shortly with other numbers of connections and with other pipelines' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l matrix -d 'Print SET and GET in the table of KVBench: -n requests (100000) on -r keys (as many as requests), with one client and with 256, and with pipelines of 256; for the options that the server runs with, or for all stores, each with a server of its own' -r -f -a "server\t'A server that runs'
stores\t'All stores of ember, and Redis where it is installed, beside KVBench\'s own figures'"
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l askpass -d 'Ask for the password'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l no-auth-warning -d 'No warning for a password on the command line'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s 3 -d 'Speak RESP3'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l tls -d 'Connect with TLS'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l insecure -d 'Trust every server. Whoever is between can read and change everything'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s l -d 'Run the tests again and again, until Ctrl-C'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s I -d 'Open the connections, send nothing over them, and tell when the server closes some; until Ctrl-C'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l distinct-seeds -d 'Other keys in each run: the seed of each connection is drawn by lot. Without it a run can be repeated: the seeds, one for each connection, are the same every time'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -s q -d 'One line for each test'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l csv -d 'As comma-separated values; the first columns are those of redis-benchmark'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l json -d 'As JSON'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand benchmark" -l help -d 'Print this help'
complete -c ember-cli -n "__fish_ember_cli_using_subcommand check" -l opened-as -d 'The path is that of a copy of this store, which may be opened' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand check" -l encryption-key-file -d 'The keys of encrypted files: 32 bytes, or lines of 64 hexadecimal digits or base64. Without it they are those in the environment variable EMBER_ENCRYPTION_KEY, if that is set' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand repair" -s o -l output -d 'Where the copy goes: a file that is not there, or for the AOF of a manifest a directory without one' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand repair" -l until -d 'Leave out the commands of an AOF that are marked with a later time (Unix time in seconds)' -r
complete -c ember-cli -n "__fish_ember_cli_using_subcommand repair" -l encryption-key-file -d 'The keys of encrypted files: 32 bytes, or lines of 64 hexadecimal digits or base64. Without it they are those in the environment variable EMBER_ENCRYPTION_KEY, if that is set' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand convert" -s o -l output -d 'Where the copy goes: a file that is not there, or for the AOF of a manifest a directory without one' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand convert" -l to -d 'What the copy is to be. Encrypted files are encrypted anew, with the first of the keys. Without it the copy is what the original is' -r -f -a "encrypted\t'Encrypted'
plain\t'Not encrypted'"
complete -c ember-cli -n "__fish_ember_cli_using_subcommand convert" -l for -d 'The server that is to read the copy' -r -f -a "redis-7.2\t'Redis 7.2'
redis-8\t'Redis 7.4 and 8'
valkey-9\t'Valkey 9'"
complete -c ember-cli -n "__fish_ember_cli_using_subcommand convert" -l encryption-key-file -d 'The keys of encrypted files: 32 bytes, or lines of 64 hexadecimal digits or base64. Without it they are those in the environment variable EMBER_ENCRYPTION_KEY, if that is set' -r -F
complete -c ember-cli -n "__fish_ember_cli_using_subcommand convert" -l leave-out -d 'Leave out what that server lacks: expiries of hash fields, vector sets, vector indexes. Without it that is an error which names the keys'
