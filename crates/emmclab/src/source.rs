//! Opens what the user named as a source: a device, a saved file, standard input.

use std::io::Read;
use std::path::Path;

use anyhow::Context;
use emmc_analysis::maker_health;
use emmc_port::saved::{SOURCE_BYTES_MAX, SavedSource};
use emmc_port::{CardData, SavedReport, SourceError, VendorFormat};

use crate::cli::{MoreArgs, SourceArgs};

impl SourceArgs {
    /// The files that the card's data comes from.
    pub(crate) fn files(&self) -> Vec<&Path> {
        self.more.files(Some(&self.source))
    }
}

impl MoreArgs {
    /// The files that the card's data comes from, with the source if one is named.
    pub(crate) fn files<'a>(&'a self, source: Option<&'a str>) -> Vec<&'a Path> {
        let replies = self.vendor_reply.iter().filter_map(|reply| reply.splitn(3, ':').nth(2)).map(Path::new);
        let with = self.with.iter().map(|path| path.as_path());
        // Of a virtual card the file of its profile, or its folder.
        let source = source.map(|name| name.strip_prefix("sim:").unwrap_or(name));
        source.map(Path::new).into_iter().chain(with).chain(replies).collect()
    }
}

/// Reads a source and the files of `--with` and `--vendor-reply`.
pub(crate) fn open(args: &SourceArgs) -> anyhow::Result<CardData> {
    open_with(&args.source, &args.more)
}

/// Like [`open`], for a command whose source is optional.
pub(crate) fn open_with(source: &str, more: &MoreArgs) -> anyhow::Result<CardData> {
    let mut card = open_one(source, more.tree.sysroot.as_deref())?;
    add(&mut card, more)?;
    Ok(card)
}

/// Adds the files of `--with` and `--vendor-reply`.
pub(crate) fn add(card: &mut CardData, more: &MoreArgs) -> anyhow::Result<()> {
    for path in &more.with {
        let name = path.to_string_lossy();
        card.merge(open_one(&name, None)?)?;
    }
    for reply in &more.vendor_reply {
        card.reports.push(vendor_reply(reply)?);
    }
    Ok(())
}

/// Reads one source.
pub(crate) fn open_one(source: &str, sysroot: Option<&Path>) -> anyhow::Result<CardData> {
    if let Some(profile) = source.strip_prefix("sim:") {
        return open_virtual(source, profile);
    }
    if let Some(root) = sysroot {
        return Ok(emmc_linux::SysRoot::new(root, source).read()?);
    }
    if emmc_linux::is_card_name(source) {
        return Ok(emmc_linux::LiveCard::new(source).read()?);
    }
    let bytes = read_limited(source)?;
    Ok(SavedSource::new(source, bytes).read()?)
}

/// Reads a virtual card.
#[cfg(feature = "sim")]
fn open_virtual(source: &str, profile: &str) -> anyhow::Result<CardData> {
    let card = crate::virtual_card::Powered::named(profile, emmc_card::nand::StoredContent::Nothing)?;
    let mut data = card.card.device().card_data(source);
    for (argument, reply) in emmc_card::card::vendor_replies(card.card.device()) {
        let format = VendorFormat::Reply { family: Some("micron".into()), argument: Some(argument) };
        data.reports.push(SavedReport { format, content: reply.to_vec() });
    }
    Ok(data)
}

/// Reports that this build has no virtual cards.
#[cfg(not(feature = "sim"))]
fn open_virtual(source: &str, _profile: &str) -> anyhow::Result<CardData> {
    let reason = "this build has no virtual cards (feature `sim`)".into();
    Err(SourceError::Unsupported { name: source.into(), reason }.into())
}

/// Reads at most one byte more than an importer accepts, so that a huge input costs nothing.
pub(crate) fn read_limited(source: &str) -> Result<Vec<u8>, SourceError> {
    let failed = |error: std::io::Error| SourceError::Read { name: source.into(), reason: error.to_string() };
    let mut bytes = Vec::new();
    let limit = SOURCE_BYTES_MAX as u64 + 1;
    if source == "-" {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        let length = std::fs::metadata(source).map_err(failed)?.len();
        if length > SOURCE_BYTES_MAX as u64 {
            return Err(SourceError::Malformed {
                name: source.into(),
                at: emmc_port::Place::Byte(SOURCE_BYTES_MAX as u64),
                expected: format!("the end of a saved register file of at most {SOURCE_BYTES_MAX} bytes"),
                found: format!("{length} bytes"),
            });
        }
        crate::pipe::open(Path::new(source)).map_err(failed)?.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    }
    Ok(bytes)
}

/// Reads `FAMILY:ARG:FILE`.
fn vendor_reply(text: &str) -> anyhow::Result<SavedReport> {
    let mut parts = text.splitn(3, ':');
    let (Some(family), Some(argument), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
        anyhow::bail!("--vendor-reply {text:?}: expected FAMILY:ARG:FILE, e.g. micron:0x11:reply.bin");
    };
    let digits = argument.strip_prefix("0x").or_else(|| argument.strip_prefix("0X"));
    let number = match digits {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => argument.parse(),
    };
    let argument =
        number.with_context(|| format!("--vendor-reply {text:?}: {argument:?} is not a command argument"))?;
    let content = reply_bytes(path, read_limited(path)?)?;
    let format = VendorFormat::Reply { family: Some(family.into()), argument: Some(argument) };
    Ok(SavedReport { format, content })
}

/// A reply from bytes or from hexadecimal digits.
fn reply_bytes(name: &str, bytes: Vec<u8>) -> Result<Vec<u8>, SourceError> {
    let digits: Vec<u8> = bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let is_text = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let reply: Vec<u8> = if is_text && digits.len() % 2 == 0 {
        let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
        digits.chunks_exact(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
    } else {
        bytes
    };
    if reply.is_empty() || reply.len() % 512 != 0 {
        return Err(SourceError::Malformed {
            name: name.into(),
            at: emmc_port::Place::Byte(0),
            expected: "a vendor reply: a multiple of 512 bytes, or of 1024 hexadecimal digits".into(),
            found: format!("{} bytes", reply.len()),
        });
    }
    Ok(reply)
}

/// Sets the time at which a source was read from its card.
pub(crate) fn set_time(card: &mut CardData, time: &str) -> anyhow::Result<()> {
    // The crate's own message adds nothing to the example, and all its messages are 60 KB of the board's binary.
    let stamp: jiff::Timestamp =
        time.parse().ok().with_context(|| format!("time {time:?}: expected RFC 3339, e.g. 2026-11-21T08:00:00Z"))?;
    if let Some(origin) = card.origins.first_mut() {
        origin.taken_at = Some(stamp.to_string());
    }
    Ok(())
}

/// Reads the vendor report of a live card, if read commands are enough.
pub(crate) fn add_live_vendor(card: &mut CardData, source: &str, more: &MoreArgs) -> anyhow::Result<()> {
    // The copied tree may be of another machine, whose mmcblk0 is another card.
    anyhow::ensure!(more.tree.sysroot.is_none(), "--vendor-health reads a live card; --sysroot reads a copy");
    if !emmc_linux::is_card_name(source) {
        anyhow::bail!("--vendor-health reads a live card; {source:?} is a saved source (use --with or --vendor-reply)");
    }
    let (Some(kind), Some(cid)) = (card.kind, card.cid) else {
        note(card, "vendor health: not read, because the manufacturer of the card is unknown");
        return Ok(());
    };
    let manufacturer_id = cid.decode(kind, None).manufacturer_id;
    let steps = maker_health::allowed_reads(kind, manufacturer_id);
    if steps.is_empty() {
        note(
            card,
            &format!("vendor health: read commands alone give no report for manufacturer {manufacturer_id:#04x}"),
        );
        return Ok(());
    }
    let asked: Vec<(u8, u32, usize)> = steps.iter().map(|step| (step.opcode, step.argument, step.bytes)).collect();
    let replies = emmc_linux::LiveCard::new(source).read_vendor(&asked)?;
    for (step, content) in steps.iter().zip(replies) {
        let format = VendorFormat::Reply { family: None, argument: Some(step.argument) };
        card.reports.push(SavedReport { format, content });
    }
    Ok(())
}

fn note(card: &mut CardData, text: &str) {
    if let Some(origin) = card.origins.first_mut() {
        origin.notes.push(text.into());
    }
}
