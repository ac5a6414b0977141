//! Changes as text: `cache=off`, or several together: `pslc=all,cq=off`.

use emmc_card::profile::shipped;
use emmc_units::{Bytes, Size};
use emmc_workload::duty::{Discard, FilesystemKind, Update};

use super::setup::{Capacity, Offset, Setup};

/// Requests that a host may have outstanding.
const DEPTH_MAX: u32 = 256;
/// What logs in memory take unless a size is given. Unit: bytes.
const LOG_BYTES: u64 = 64 << 20;

/// Every key, its values, and what it changes.
pub const KEYS: &[(&str, &str, &str)] = &[
    ("pslc", "all, a size or a share", "user area with one bit a cell (enhanced area)"),
    ("reliable", "on or off", "write reliability (WR_REL_SET)"),
    ("cache", "on or off", "the card's volatile cache"),
    ("cq", "on or off", "the command queue"),
    ("depth", "a number from 1 to 256", "requests that the host keeps outstanding"),
    ("discard", "off, weekly or online", "when deleted data is trimmed"),
    ("fs", "ext4, f2fs or none", "the filesystem; none: overwrites in place"),
    ("commit", "whole seconds from 1 to 86400, or never", "commit interval of the filesystem, flushes of the cache"),
    ("unpartitioned", "a size or a share", "the end of the card that no partition uses"),
    ("align", "page or a size", "by how much the partition starts off an allocation unit"),
    ("log", "ram, ram:SIZE or card", "where logs (the sequential part) are kept"),
    ("update", "WEEKSw:SIZE with 0.01 to 520 weeks, or off", "an A/B update of this size every so often"),
    ("part", "a factor from 0.1x to 64x, or a shipped profile", "a larger or another part"),
];

/// Changes that are made together.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// As written.
    pub name: String,
    items: Vec<Item>,
}

/// Why a change is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("change {text:?}: {rule}")]
pub struct ChangeError {
    /// The part that is wrong.
    pub text: String,
    /// What was expected.
    pub rule: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Item {
    Pslc(Size),
    Reliable(bool),
    Cache(bool),
    Queueing(bool),
    Depth(u32),
    Discard(Discard),
    Filesystem(Option<FilesystemKind>),
    Flush(Option<f64>),
    Unpartitioned(Size),
    Align(Offset),
    Log(Option<u64>),
    Update(Option<Update>),
    Part(Capacity),
}

impl Change {
    /// Reads changes that are made together, separated by commas.
    ///
    /// Errors: the first that is wrong; a key twice.
    pub fn parse(text: &str) -> Result<Self, ChangeError> {
        let (mut items, mut keys) = (Vec::new(), Vec::new());
        for part in text.split(',').map(str::trim) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            items.push(item(part, key, value)?);
            if keys.contains(&key) {
                return Err(ChangeError { text: text.into(), rule: format!("{key} is set twice; expected once") });
            }
            keys.push(key);
        }
        Ok(Self { name: text.into(), items })
    }

    /// Sets up what it changes.
    pub fn apply(&self, setup: &mut Setup) {
        for item in &self.items {
            match item.clone() {
                Item::Pslc(size) => setup.pslc = Some(size),
                Item::Reliable(on) => setup.reliable = Some(on),
                Item::Cache(on) => setup.cache = on,
                Item::Queueing(on) => setup.queueing = Some(on),
                Item::Depth(depth) => setup.depth = depth,
                Item::Discard(discard) => setup.discard = discard,
                Item::Filesystem(kind) => setup.filesystem = kind,
                Item::Flush(seconds) => setup.flush_s = seconds,
                Item::Unpartitioned(size) => setup.unpartitioned = size,
                Item::Align(offset) => setup.off_bytes = offset,
                Item::Log(bytes) => setup.log_in_memory = bytes,
                Item::Update(update) => setup.update = update,
                Item::Part(part) => setup.capacity = part,
            }
        }
    }

    /// Whether it leaves a part of the card without partition.
    pub(super) fn leaves_unpartitioned(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Unpartitioned(_)))
    }

    /// Whether it asks for one bit a cell.
    pub(super) fn is_pslc(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Pslc(_)))
    }

    /// The key of a change of the requests that a recording does not have.
    pub(super) fn key_of_programs(&self) -> Option<&'static str> {
        self.items.iter().find_map(|item| match item {
            Item::Filesystem(_) => Some("fs"),
            Item::Flush(_) => Some("commit"),
            Item::Log(_) => Some("log"),
            Item::Update(_) => Some("update"),
            _ => None,
        })
    }
}

fn item(text: &str, key: &str, value: &str) -> Result<Item, ChangeError> {
    let refuse = |rule: String| Err(ChangeError { text: text.into(), rule });
    let Some((_, values, _)) = KEYS.iter().find(|(known, ..)| *known == key) else {
        let known: Vec<&str> = KEYS.iter().map(|(known, ..)| *known).collect();
        return refuse(format!("no such key; expected KEY=VALUE with one of {}", known.join(", ")));
    };
    match read(key, value) {
        Ok(Some(item)) => Ok(item),
        Ok(None) => refuse(format!("expected {key}= and {values}")),
        Err(why) => refuse(format!("{why}; expected {values}")),
    }
}

/// Errors: why a value that has the right form is wrong.
fn read(key: &str, value: &str) -> Result<Option<Item>, String> {
    let switch = |of: fn(bool) -> Item| match value {
        "on" => Some(of(true)),
        "off" => Some(of(false)),
        _ => None,
    };
    Ok(match key {
        "pslc" if value == "all" => Some(Item::Pslc(Size::Max)),
        "pslc" => Some(Item::Pslc(size(value)?)),
        "reliable" => switch(Item::Reliable),
        "cache" => switch(Item::Cache),
        "cq" => switch(Item::Queueing),
        "depth" => value.parse().ok().filter(|depth| (1..=DEPTH_MAX).contains(depth)).map(Item::Depth),
        "discard" => discard(value).map(Item::Discard),
        "fs" => filesystem(value).map(Item::Filesystem),
        "commit" if value == "never" => Some(Item::Flush(None)),
        "commit" => seconds(value).map(|seconds| Item::Flush(Some(seconds))),
        "unpartitioned" => Some(Item::Unpartitioned(size(value)?)),
        "align" if value == "page" => Some(Item::Align(Offset::Page)),
        "align" => match size(value)? {
            Size::Exact(Bytes(bytes)) if bytes % 512 == 0 => Some(Item::Align(Offset::Bytes(bytes))),
            _ => None,
        },
        "log" => match value.split_once(':') {
            None if value == "card" => Some(Item::Log(None)),
            None if value == "ram" => Some(Item::Log(Some(LOG_BYTES))),
            Some(("ram", text)) => match size(text)? {
                Size::Exact(Bytes(bytes)) => Some(Item::Log(Some(bytes))),
                _ => None,
            },
            _ => None,
        },
        "update" if value == "off" => Some(Item::Update(None)),
        "update" => update(value)?.map(|update| Item::Update(Some(update))),
        "part" => Some(Item::Part(part(value)?)),
        _ => None,
    })
}

fn size(text: &str) -> Result<Size, String> {
    match text.parse::<Size>() {
        Ok(Size::Max) => Ok(Size::Max),
        Ok(size) if size == Size::Exact(Bytes(0)) || size == Size::Percent(0) => Err("it is nothing".into()),
        Ok(Size::Percent(percent)) if percent > 100 => Err(format!("{percent} % is more than all")),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}

/// A discard policy by its name.
pub(super) fn discard(text: &str) -> Option<Discard> {
    match text {
        "off" => Some(Discard::Never),
        "weekly" => Some(Discard::Weekly),
        "online" => Some(Discard::Online),
        _ => None,
    }
}

fn filesystem(text: &str) -> Option<Option<FilesystemKind>> {
    match text {
        "none" => Some(None),
        "ext4" => Some(Some(FilesystemKind::Ext4)),
        "f2fs" => Some(Some(FilesystemKind::F2fs)),
        _ => None,
    }
}

/// Whole seconds up to a day: filesystems know no shorter interval.
fn seconds(text: &str) -> Option<f64> {
    let number = text.strip_suffix('s').unwrap_or(text);
    number.parse::<u32>().ok().filter(|seconds| (1..=86_400).contains(seconds)).map(f64::from)
}

/// `8w:512MiB`.
fn update(text: &str) -> Result<Option<Update>, String> {
    let Some((weeks, image)) = text.split_once(':') else { return Ok(None) };
    let number = weeks.strip_suffix("weeks").or(weeks.strip_suffix('w'));
    let weeks = number.and_then(|number| number.parse::<f64>().ok()).filter(|weeks| (0.01..=520.0).contains(weeks));
    match (weeks, size(image)?) {
        (Some(weeks), Size::Exact(Bytes(bytes))) => Ok(Some(Update { weeks, bytes: bytes / 4096 * 4096 })),
        _ => Ok(None),
    }
}

fn part(text: &str) -> Result<Capacity, String> {
    if let Some(times) = text.strip_suffix('x').and_then(|number| number.parse::<f64>().ok()) {
        let is_sane = (0.1..=64.0).contains(&times);
        return if is_sane { Ok(Capacity::Times(times)) } else { Err("it is out of range".into()) };
    }
    let profile = shipped::named(text.strip_prefix("sim:").unwrap_or(text)).map_err(|error| error.to_string())?;
    Ok(Capacity::Shipped(Box::new(profile)))
}
