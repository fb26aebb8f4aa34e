//! Changes of the topology on which the nodes of a group agree, and their text: one line of words.
//!
//! ```text
//! nothing
//! voters <names, with commas between them>
//! join <name> <addresses and shard> <slots>
//! address <name> <addresses and shard>
//! forget <name>
//! add-slots <name> <slots>
//! set-slot <slot> <name>
//! delete-slots <slots>
//! flush-slots <name>
//! replicate <name> <name of the primary>
//! serve <name> <number of its data> <version>
//! promote <name>:<number of its data> <name of the primary> <version>
//! in-sync <name of the primary> <number of its data> <version> async
//! in-sync <name of the primary> <number of its data> <version> sync <name>:<number of its data>…
//! ```

use std::ops::RangeInclusive;

use crate::node::{Address, DataSet, Name, Node, Role, ShardState};
use crate::topology::text::{
    address_word, in_sync_text, name_of, names_of, number_of, parse_address, parse_data, parse_in_sync,
    parse_slots, ranges_text, words_of,
};

/// A change of the topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The first entry of a leader.
    Nothing,
    /// The nodes that vote from now on.
    Voters(Vec<Name>),
    /// A node becomes a member and owns these slots.
    Join {
        /// The new member.
        node: Box<Node>,
        /// Its slots.
        slots: Vec<RangeInclusive<u16>>,
    },
    /// A member has other addresses.
    Address {
        /// The member.
        name: Name,
        /// Its addresses.
        address: Address,
    },
    /// A member is removed; its slots then have no owner.
    Forget(Name),
    /// Slots without an owner get one.
    AddSlots {
        /// The owner.
        owner: Name,
        /// The slots.
        slots: Vec<RangeInclusive<u16>>,
    },
    /// A slot without an owner gets one; without effect if it is the owner already.
    SetSlot {
        /// The slot.
        slot: u16,
        /// The owner.
        owner: Name,
    },
    /// The owners of slots are removed.
    DeleteSlots(Vec<RangeInclusive<u16>>),
    /// A member owns no slots from now on.
    FlushSlots(Name),
    /// A member becomes a replica of another one.
    Replicate {
        /// The replica.
        replica: Name,
        /// Its primary.
        primary: Name,
    },
    /// A primary serves its slots with these data, because no replica is to take them over.
    Serve {
        /// The data of the primary.
        data: DataSet,
        /// The expected version of the state of its shard.
        version: u64,
    },
    /// A replica takes over the slots of its primary, which becomes a replica of it.
    Promote {
        /// The data of the replica.
        data: DataSet,
        /// Its primary.
        primary: Name,
        /// The expected version of the state of the shard.
        version: u64,
    },
    /// A primary waits for the acknowledgements of these replicas from now on.
    InSync {
        /// The data of the primary.
        data: DataSet,
        /// The expected version of the state of its shard.
        version: u64,
        /// The replicas, or `None` if it waits for none.
        replicas: Option<Vec<DataSet>>,
    },
}

impl Change {
    /// Returns the line of the change.
    pub fn text(&self) -> String {
        match self {
            Change::Nothing => "nothing".to_owned(),
            Change::Voters(voters) => format!("voters {}", words_of(voters, ",")),
            Change::Join { node, slots } => {
                format!("join {} {}{}", node.name, address_word(node), ranges_text(slots))
            }
            Change::Address { name, address } => {
                // The shard of a member does not change with its addresses.
                let node = Node {
                    name: *name,
                    shard: *name,
                    address: address.clone(),
                    role: Role::Primary,
                    epoch: 0,
                    state: ShardState::default(),
                };
                format!("address {name} {}", address_word(&node))
            }
            Change::Forget(name) => format!("forget {name}"),
            Change::AddSlots { owner, slots } => format!("add-slots {owner}{}", ranges_text(slots)),
            Change::SetSlot { slot, owner } => format!("set-slot {slot} {owner}"),
            Change::DeleteSlots(slots) => format!("delete-slots{}", ranges_text(slots)),
            Change::FlushSlots(name) => format!("flush-slots {name}"),
            Change::Replicate { replica, primary } => format!("replicate {replica} {primary}"),
            Change::Serve { data: DataSet { node, incarnation }, version } => {
                format!("serve {node} {incarnation} {version}")
            }
            Change::Promote { data, primary, version } => {
                format!("promote {data} {primary} {version}")
            }
            Change::InSync { data: DataSet { node, incarnation }, version, replicas } => {
                format!("in-sync {node} {incarnation} {version} {}", in_sync_text(replicas.as_deref()))
            }
        }
    }

    /// Reads the line of a change.
    ///
    /// # Errors
    /// Returns what is wrong with the line.
    pub fn parse(line: &str) -> Result<Change, String> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let slots_of =
            |words: &[&str]| words.iter().map(|word| parse_slots(word)).collect::<Result<Vec<_>, _>>();
        Ok(match words[..] {
            ["nothing"] => Change::Nothing,
            ["voters", names] => Change::Voters(names_of(names)?),
            ["join", name, address, ref slots @ ..] => {
                let (name, (address, shard)) = (name_of(name)?, parse_address(address)?);
                let shard = shard.unwrap_or(name);
                let (role, state) = (Role::Primary, ShardState::default());
                let node = Box::new(Node { name, shard, address, role, epoch: 0, state });
                Change::Join { node, slots: slots_of(slots)? }
            }
            ["address", name, address] => {
                Change::Address { name: name_of(name)?, address: parse_address(address)?.0 }
            }
            ["forget", name] => Change::Forget(name_of(name)?),
            ["add-slots", owner, ref slots @ ..] => {
                Change::AddSlots { owner: name_of(owner)?, slots: slots_of(slots)? }
            }
            ["set-slot", slot, owner] => {
                Change::SetSlot { slot: *parse_slots(slot)?.start(), owner: name_of(owner)? }
            }
            ["delete-slots", ref slots @ ..] => Change::DeleteSlots(slots_of(slots)?),
            ["flush-slots", name] => Change::FlushSlots(name_of(name)?),
            ["replicate", replica, primary] => {
                Change::Replicate { replica: name_of(replica)?, primary: name_of(primary)? }
            }
            ["serve", node, incarnation, version] => {
                let data = DataSet { node: name_of(node)?, incarnation: number_of(incarnation, "the data")? };
                Change::Serve { data, version: number_of(version, "a version")? }
            }
            ["promote", data, primary, version] => Change::Promote {
                data: parse_data(data)?,
                primary: name_of(primary)?,
                version: number_of(version, "a version")?,
            },
            ["in-sync", node, incarnation, version, ref replicas @ ..] => Change::InSync {
                data: DataSet { node: name_of(node)?, incarnation: number_of(incarnation, "the data")? },
                version: number_of(version, "a version")?,
                replicas: parse_in_sync(replicas)?,
            },
            _ => {
                let kind = beginning_of(line);
                return Err(format!("'{kind}' is not a change of a topology"));
            }
        })
    }
}

/// Returns the beginning of a line for an error.
fn beginning_of(line: &str) -> String {
    const SHOWN: usize = 40;
    line.chars().take(SHOWN).flat_map(char::escape_default).collect()
}

/// Returns slots as ranges, each slot once and in ascending order.
pub fn ranges_of(slots: &[u16]) -> Vec<RangeInclusive<u16>> {
    let mut named = vec![false; crate::slots::SLOTS];
    slots.iter().for_each(|&slot| named[usize::from(slot)] = true);
    let is_named = |slot: u16| named[usize::from(slot)].then_some(());
    crate::slots::ranges(is_named).into_iter().map(|(range, ())| range).collect()
}
