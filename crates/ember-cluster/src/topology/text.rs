//! The topology as text: one line for each node, in the form of Redis's `nodes.conf` and of `CLUSTER NODES`.
//!
//! ```text
//! <name> <ip>:<port>@<bus port>,<hostname>,tls-port=<port>,shard-id=<name> <flags> <primary or -> 0 0 <epoch> \
//!     connected <slots>
//! vars currentEpoch <epoch> lastVoteEpoch 0
//! group <name> <index> <term> <voters, with commas between them>
//! forgotten <names>
//! primary <name> <version> <number of its data> async
//! primary <name> <version> <number of its data> sync <name>:<number of its data>…
//! ```
//!
//! The lines after those of the nodes and of the epoch exist only if the nodes agree on the topology. There is a line
//! `primary` for each primary on whose data the nodes have agreed.

use std::fmt::Write;
use std::ops::RangeInclusive;

use super::{Group, NODES_MAX, Topology, UNOWNED};
use crate::node::{Address, DataSet, Name, Node, Role, ShardState};
use crate::slots::SLOTS;

/// The distance of the port for other nodes from the port for clients, if a line does not name it.
const BUS_PORT_OFFSET: u16 = 10_000;

/// The number of words of a line before its slots.
const WORDS_BEFORE_SLOTS: usize = 8;

/// A line that is not a valid part of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The number of the line, as the caller counts them.
    pub line: usize,
    /// The reason.
    pub reason: String,
}

/// Returns the description of a node in `CLUSTER NODES`, for a client with TLS (`uses_tls`) or without.
pub fn describe(topology: &Topology, node: &Node, uses_tls: bool, has_failed: bool) -> String {
    let Address { ip, bus_port, hostname, .. } = &node.address;
    let port = node.address.client_port(uses_tls);
    let mut text = format!("{} {ip}:{port}@{bus_port}", node.name);
    if !hostname.is_empty() {
        text += ",";
        text += hostname;
    }
    finish(topology, node, &topology.ranges_of(node.name), has_failed, &mut text);
    text
}

/// Returns the lines of a file that contains a topology, without line ends.
pub fn lines(topology: &Topology) -> Vec<String> {
    let nodes = topology.nodes.iter().zip(topology.ranges_by_node());
    let mut lines: Vec<String> = nodes.map(|(node, ranges)| line(topology, node, &ranges)).collect();
    lines.push(format!("vars currentEpoch {} lastVoteEpoch 0", topology.current_epoch));
    if let Some(Group { name, index, term, voters, forgotten }) = &topology.group {
        lines.push(format!("group {name} {index} {term} {}", words_of(voters, ",")));
        lines.push(format!("forgotten {}", words_of(forgotten, " ")));
        for Node { name, state: ShardState { version, incarnation, in_sync }, .. } in &topology.nodes {
            if *version != 0 {
                let in_sync = in_sync_text(in_sync.as_deref());
                lines.push(format!("primary {name} {version} {incarnation} {in_sync}"));
            }
        }
    }
    lines
}

/// Returns names with a separator between them.
pub(crate) fn words_of(names: &[Name], separator: &str) -> String {
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(separator)
}

/// Reads names with commas between them.
pub(crate) fn names_of(text: &str) -> Result<Vec<Name>, String> {
    text.split(',').map(name_of).collect()
}

/// Reads the word for the data of a node.
pub(crate) fn parse_data(word: &str) -> Result<DataSet, String> {
    let wrong = || format!("'{}' is not a node and the number of its data", word.escape_default());
    let (node, incarnation) = word.split_once(':').ok_or_else(wrong)?;
    Ok(DataSet { node: name_of(node)?, incarnation: number_of(incarnation, "the data of a node")? })
}

/// Returns the words for the replicas of which each has every acknowledged write.
pub(crate) fn in_sync_text(replicas: Option<&[DataSet]>) -> String {
    let Some(replicas) = replicas else { return "async".to_owned() };
    let words = replicas.iter().map(DataSet::to_string);
    ["sync".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Reads the words of [`in_sync_text`].
pub(crate) fn parse_in_sync(words: &[&str]) -> Result<Option<Vec<DataSet>>, String> {
    match words {
        ["async"] => Ok(None),
        ["sync", replicas @ ..] => {
            replicas.iter().map(|word| parse_data(word)).collect::<Result<_, _>>().map(Some)
        }
        _ => Err("writes are acknowledged neither async nor sync".to_owned()),
    }
}

/// Returns the lines of a topology without the flag of this node, so that all nodes of a group have the same lines.
pub fn shared_lines(topology: &Topology) -> Vec<String> {
    let mut lines = lines(topology);
    lines[topology.myself] = lines[topology.myself].replacen(" myself,", " ", 1);
    lines
}

/// Reads a topology from the lines of [`shared_lines`] for the node with this name.
///
/// # Errors
/// Returns the first line that is wrong, and an error if the node is not in the topology.
pub fn parse_shared<'l>(
    lines: impl IntoIterator<Item = &'l str>,
    myself: Name,
) -> Result<Topology, LineError> {
    let mine = format!("{myself} ");
    let with_flag = |line: &str| match line.starts_with(&mine) {
        true if line.contains(" master ") => line.replacen(" master ", " myself,master ", 1),
        true => line.replacen(" slave ", " myself,slave ", 1),
        false => line.to_owned(),
    };
    let lines: Vec<String> = lines.into_iter().map(with_flag).collect();
    parse((1..).zip(lines.iter().map(String::as_str)))
}

fn line(topology: &Topology, node: &Node, ranges: &[RangeInclusive<u16>]) -> String {
    let mut text = format!("{} {}", node.name, address_word(node));
    finish(topology, node, ranges, false, &mut text);
    text
}

/// Returns the word for the addresses and the shard of a node.
pub(crate) fn address_word(node: &Node) -> String {
    let Address { ip, port, tls_port, bus_port, hostname, human_name } = &node.address;
    let mut text = format!("{ip}:{port}@{bus_port},{hostname},tls-port={tls_port}");
    if !human_name.is_empty() {
        text += ",nodename=";
        text += human_name;
    }
    text += ",shard-id=";
    text += node.shard.as_str();
    text
}

/// Appends the words after the address. The times of the last PING and PONG are 0, because nodes exchange none.
fn finish(
    topology: &Topology,
    node: &Node,
    ranges: &[RangeInclusive<u16>],
    has_failed: bool,
    text: &mut String,
) {
    let myself = if topology.is_myself(node) { "myself," } else { "" };
    let (role, primary) = match &node.role {
        Role::Primary => ("master", "-"),
        Role::Replica(primary) => ("slave", primary.as_str()),
    };
    let epoch = topology.epoch_of(node);
    let (flag, link) = if has_failed { (",fail", "disconnected") } else { ("", "connected") };
    _ = write!(text, " {myself}{role}{flag} {primary} 0 0 {epoch} {link}");
    text.push_str(&ranges_text(ranges));
}

/// Returns the words for ranges of slots, with a space before each.
pub(crate) fn ranges_text(ranges: &[RangeInclusive<u16>]) -> String {
    let mut text = String::new();
    for range in ranges {
        _ = match range.start() == range.end() {
            true => write!(text, " {}", range.start()),
            false => write!(text, " {}-{}", range.start(), range.end()),
        };
    }
    text
}

/// A line that was read, before all nodes are known.
struct Parsed {
    number: usize,
    node: Node,
    has_shard: bool,
    is_myself: bool,
    slots: Vec<RangeInclusive<u16>>,
}

/// Reads a topology from numbered lines; empty lines are skipped.
///
/// # Errors
/// Returns the first invalid line, or a line that contradicts other lines.
pub fn parse<'l>(lines: impl IntoIterator<Item = (usize, &'l str)>) -> Result<Topology, LineError> {
    let mut parsed: Vec<Parsed> = Vec::new();
    let (mut current_epoch, mut group, mut forgotten, mut states) = (0, None, Vec::new(), Vec::new());
    let mut last = 1;
    for (number, line) in lines {
        last = number;
        let wrong = |reason: String| LineError { line: number, reason };
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [] => {}
            ["vars", "currentEpoch", epoch, "lastVoteEpoch", vote] => {
                current_epoch = number_of(epoch, "currentEpoch").map_err(wrong)?;
                number_of::<u64>(vote, "lastVoteEpoch").map_err(wrong)?;
            }
            ["group", name, index, term, voters] => {
                group = Some(parse_group(name, index, term, voters).map_err(wrong)?);
            }
            ["forgotten", ref names @ ..] => {
                forgotten =
                    names.iter().map(|name| name_of(name)).collect::<Result<_, _>>().map_err(wrong)?;
            }
            ["primary", name, version, incarnation, ref in_sync @ ..] => {
                let state = parse_state(version, incarnation, in_sync).map_err(wrong)?;
                states.push((number, name_of(name).map_err(wrong)?, state));
            }
            _ => {
                let node = parse_node(number, &words).map_err(wrong)?;
                if parsed.iter().any(|other| other.node.name == node.node.name) {
                    return Err(wrong(format!("node {} occurs twice", node.node.name)));
                }
                if parsed.len() == NODES_MAX {
                    return Err(wrong(format!("there are more than {NODES_MAX} nodes")));
                }
                parsed.push(node);
            }
        }
    }
    let mut topology = build(parsed, current_epoch, last)?;
    topology.group = group.map(|group| Group { forgotten, ..group });
    for (line, name, state) in states {
        let found = topology.nodes.iter_mut().find(|node| node.name == name && !node.is_replica());
        let wrong = || LineError { line, reason: format!("node {name} is not a known primary") };
        found.ok_or_else(wrong)?.state = state;
    }
    Ok(topology)
}

fn parse_state(version: &str, incarnation: &str, in_sync: &[&str]) -> Result<ShardState, String> {
    Ok(ShardState {
        version: number_of(version, "the version of a shard")?,
        incarnation: number_of(incarnation, "the data of a node")?,
        in_sync: parse_in_sync(in_sync)?,
    })
}

fn parse_group(name: &str, index: &str, term: &str, voters: &str) -> Result<Group, String> {
    Ok(Group {
        name: name_of(name)?,
        index: number_of(index, "the index of the last change")?,
        term: number_of(term, "the term of the last change")?,
        voters: names_of(voters)?,
        forgotten: Vec::new(),
    })
}

/// Checks that the lines do not contradict each other, and builds the topology.
fn build(mut parsed: Vec<Parsed>, current_epoch: u64, last: usize) -> Result<Topology, LineError> {
    let of_line = |line: usize, reason: String| LineError { line, reason };
    let mut mine = parsed.iter().enumerate().filter(|(_, line)| line.is_myself);
    let myself = mine.next().map(|(index, _)| index);
    if let Some((_, second)) = mine.next() {
        return Err(of_line(second.number, "a second node has the flag myself".to_owned()));
    }
    let myself = myself.ok_or_else(|| of_line(last, "no node has the flag myself".to_owned()))?;
    let mut owners = vec![UNOWNED; SLOTS].into_boxed_slice();
    for index in 0..parsed.len() {
        let Parsed { number, node, has_shard, slots, .. } = &parsed[index];
        if let Some(primary) = node.primary() {
            let wrong = |reason: &str| of_line(*number, format!("node {primary}, its primary, {reason}"));
            let found = parsed.iter().find(|line| line.node.name == primary);
            let found = found.ok_or_else(|| wrong("does not exist"))?;
            if found.node.is_replica() {
                return Err(wrong("is a replica itself"));
            }
            if *has_shard && node.shard != found.node.shard {
                return Err(wrong("has another shard-id"));
            }
            if !slots.is_empty() {
                return Err(of_line(*number, "a replica owns no slots".to_owned()));
            }
            let shard = found.node.shard;
            parsed[index].node.shard = shard;
            continue;
        }
        for slot in slots.iter().cloned().flatten() {
            let owner = &mut owners[usize::from(slot)];
            if *owner != UNOWNED {
                return Err(of_line(*number, format!("slot {slot} has two owners")));
            }
            *owner = u16::try_from(index).expect("there are fewer nodes");
        }
    }
    let nodes: Vec<Node> = parsed.into_iter().map(|line| line.node).collect();
    let highest = nodes.iter().map(|node| node.epoch).max().unwrap_or(0);
    Ok(Topology { nodes, myself, owners, current_epoch: current_epoch.max(highest), group: None })
}

fn parse_node(number: usize, words: &[&str]) -> Result<Parsed, String> {
    if words.len() < WORDS_BEFORE_SLOTS {
        return Err(format!(
            "a node needs at least {WORDS_BEFORE_SLOTS} words, but the line has {}",
            words.len()
        ));
    }
    let name = name_of(words[0])?;
    let (address, shard) = parse_address(words[1])?;
    let (role, is_myself) = parse_flags(words[2], words[3])?;
    for (word, what) in [(words[4], "the time of the last PING"), (words[5], "the time of the last PONG")] {
        number_of::<u64>(word, what)?;
    }
    let epoch = number_of(words[6], "the configuration epoch")?;
    if !matches!(words[7], "connected" | "disconnected") {
        return Err(format!("'{}' is neither connected nor disconnected", words[7].escape_default()));
    }
    let slots = words[WORDS_BEFORE_SLOTS..].iter().map(|word| parse_slots(word)).collect::<Result<_, _>>()?;
    let epoch = if matches!(role, Role::Primary) { epoch } else { 0 };
    // A node without the name of a shard forms a shard with the node's own name, unless it is a replica: `build` then
    // assigns the shard of its primary.
    let state = ShardState::default();
    let node = Node { name, shard: shard.unwrap_or(name), address, role, epoch, state };
    Ok(Parsed { number, node, has_shard: shard.is_some(), is_myself, slots })
}

pub(crate) fn parse_address(word: &str) -> Result<(Address, Option<Name>), String> {
    let mut parts = word.split(',');
    let place = parts.next().unwrap_or_default();
    let wrong = || format!("'{}' is not an address ip:port@bus-port", place.escape_default());
    let (ip, ports) = place.rsplit_once(':').ok_or_else(wrong)?;
    let (port, bus_port) = ports.split_once('@').map_or((ports, None), |(port, bus)| (port, Some(bus)));
    let port: u16 = number_of(port, "the port")?;
    let bus_port = match bus_port {
        Some(text) => number_of(text, "the port for other nodes")?,
        None => port.checked_add(BUS_PORT_OFFSET).ok_or_else(wrong)?,
    };
    let hostname = parts.next().unwrap_or_default();
    let mut address = Address {
        ip: checked(ip, "IP address")?,
        port,
        bus_port,
        hostname: checked(hostname, "host name")?,
        ..Address::default()
    };
    let mut shard = None;
    for part in parts {
        match part.split_once('=') {
            Some(("shard-id", text)) => shard = Some(name_of(text)?),
            Some(("nodename", text)) => address.human_name = checked(text, "node name")?,
            Some(("tls-port", text)) => address.tls_port = number_of(text, "tls-port")?,
            Some(("tcp-port", text)) => {
                // In files of a Redis node with `tls-cluster`, the port in the address is the TLS port, and `tcp-port`
                // is the one without TLS.
                address.tls_port = address.port;
                address.port = number_of(text, "tcp-port")?;
            }
            _ => return Err(format!("'{}' is not a known property", part.escape_default())),
        }
    }
    Ok((address, shard))
}

fn parse_flags(flags: &str, primary: &str) -> Result<(Role, bool), String> {
    let (mut is_myself, mut is_primary, mut is_replica) = (false, false, false);
    for flag in flags.split(',') {
        match flag {
            "myself" => is_myself = true,
            "master" => is_primary = true,
            "slave" => is_replica = true,
            // A failure that another server has detected may be over.
            "fail?" | "fail" | "nofailover" | "noflags" => {}
            "handshake" | "noaddr" => {
                return Err(format!("a node with the flag {flag} has no known address"));
            }
            _ => return Err(format!("'{}' is not a flag", flag.escape_default())),
        }
    }
    let role = match (is_primary, is_replica, primary) {
        (true, false, "-") => Role::Primary,
        (false, true, name) if name != "-" => Role::Replica(name_of(name)?),
        _ => return Err("a node is either a master without a primary, or a slave with one".to_owned()),
    };
    Ok((role, is_myself))
}

pub(crate) fn parse_slots(word: &str) -> Result<RangeInclusive<u16>, String> {
    if word.starts_with('[') {
        return Err(format!("{}: slots that are being moved are not supported", word.escape_default()));
    }
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let (first, last): (u16, u16) = (number_of(first, "a slot")?, number_of(last, "a slot")?);
    if first > last || usize::from(last) >= SLOTS {
        return Err(format!("'{}' is not a range of slots from 0 to {}", word.escape_default(), SLOTS - 1));
    }
    Ok(first..=last)
}

pub(crate) fn name_of(text: &str) -> Result<Name, String> {
    let wrong = || format!("'{}' is not a name of 40 lowercase hexadecimal digits", text.escape_default());
    Name::parse(text).ok_or_else(wrong)
}

pub(crate) fn number_of<N: std::str::FromStr>(text: &str, what: &str) -> Result<N, String> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_plain { text.parse().ok() } else { None };
    number.ok_or_else(|| format!("'{}' is not a valid number for {what}", text.escape_default()))
}

/// Returns the text if it can be a part of a line, otherwise an error.
fn checked(text: &str, what: &str) -> Result<String, String> {
    let is_fit = |letter: char| letter.is_ascii_graphic() && !"\"'\\=,".contains(letter);
    let wrong = || format!("'{}' is not a valid {what}", text.escape_default());
    text.chars().all(is_fit).then(|| text.to_owned()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn read(text: &str) -> Result<Topology, LineError> {
        parse(text.lines().enumerate().map(|(index, line)| (index + 1, line)))
    }

    fn pair() -> Topology {
        let text = format!(
            "{A} 10.0.0.1:7000@17000,host-a,tls-port=7443,nodename=one,shard-id={B} myself,master - 0 0 3 connected 0-5 7\n\
             {B} 10.0.0.2:7001@17001 slave {A} 0 0 3 connected\n\
             vars currentEpoch 9 lastVoteEpoch 0\n"
        );
        read(&text).unwrap()
    }

    #[test]
    fn a_topology_is_read_back_from_its_lines() {
        let topology = pair();
        assert_eq!(topology.myself().address.human_name, "one");
        assert_eq!(topology.nodes()[1].shard, topology.nodes()[0].shard);
        assert_eq!((topology.current_epoch(), topology.epoch_of(&topology.nodes()[1])), (9, 3));
        let again = read(&lines(&topology).join("\n")).unwrap();
        assert_eq!(again, topology);
    }

    #[test]
    fn the_description_of_a_node_is_that_of_redis() {
        let topology = pair();
        let [one, other] = topology.nodes() else { panic!("there are two nodes") };
        let expected = format!("{A} 10.0.0.1:7000@17000,host-a myself,master - 0 0 3 connected 0-5 7");
        assert_eq!(describe(&topology, one, false, false), expected);
        assert!(describe(&topology, one, true, false).contains(" 10.0.0.1:7443@17000,host-a "));
        let described = |has_failed| describe(&topology, other, false, has_failed);
        assert_eq!(described(false), format!("{B} 10.0.0.2:7001@17001 slave {A} 0 0 3 connected"));
        assert_eq!(described(true), format!("{B} 10.0.0.2:7001@17001 slave,fail {A} 0 0 3 disconnected"));
    }

    #[test]
    fn a_file_of_redis_is_read() {
        let text = format!(
            "{B} 127.0.0.1:7001@17001,,tls-port=0,shard-id={A} master - 0 1700000000000 2 connected 8192-16383\n\
             {A} 127.0.0.1:7000@17000,,tls-port=0,shard-id={B} myself,master - 0 0 1 connected 0-8191\n\
             vars currentEpoch 2 lastVoteEpoch 0\n"
        );
        let topology = read(&text).unwrap();
        assert_eq!((topology.assigned(), topology.size()), (SLOTS, 2));
        assert_eq!(topology.myself().name.as_str(), A);
    }

    #[test]
    fn a_wrong_line_is_named_with_its_reason() {
        let mine = format!("{A} :7000@17000 myself,master - 0 0 1 connected");
        for (text, line, reason) in [
            (String::new(), 1, "no node has the flag myself"),
            ("x y".to_owned(), 1, "at least 8 words"),
            (format!("{mine} 16384"), 1, "not a range of slots"),
            (format!("{mine} 5-4"), 1, "not a range of slots"),
            (format!("{mine} +1"), 1, "not a valid number for a slot"),
            (format!("{mine} [5->-{B}]"), 1, "being moved"),
            (format!("{mine} 1\n{mine} 2"), 2, "occurs twice"),
            (format!("{mine} 1 1"), 1, "slot 1 has two owners"),
            (format!("{mine}\n{B} :1@2 myself,master - 0 0 1 connected"), 2, "second node"),
            (format!("{mine}\n{B} :1@2 master - 0 0 1 connected 3\n\nvars x"), 4, "at least 8 words"),
            (format!("{mine}\n{B} :1@2 slave {B} 0 0 1 connected"), 2, "is a replica itself"),
            (format!("{mine}\n{B} :1@2 slave {A} 0 0 1 connected 4"), 2, "a replica owns no slots"),
            (format!("{mine}\n{B} :1@2 slave - 0 0 1 connected"), 2, "either a master"),
            (format!("{mine}\n{B} :x@2 master - 0 0 1 connected"), 2, "not a valid number for the port"),
            (format!("{mine}\n{B} :1@2,h,color=red master - 0 0 1 connected"), 2, "not a known property"),
        ] {
            let error = read(&text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error:?}");
            assert!(error.reason.contains(reason), "{text}: {error:?}");
        }
    }
}
