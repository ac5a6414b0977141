//! What an update has in common on every card: the image, checks before, consent, the work, and what to do next.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use emmc_analysis::plan::CardIdentity;
use emmc_linux::hold::{self, Point};
use emmc_port::ffu::{
    CHUNK_BYTES_MAX, Ended, Event, FfuMode, FfuPort, FfuState, IMAGE_BYTES_MAX, Order, carry_out, version_text,
};
use emmc_port::{CardData, Consent};
use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_units::Bytes;
use sha2::{Digest, Sha256};

use super::{FfuDocument, Image, Registers, is_version, refused, state, unable};
use crate::cli::{FfuArgs, FfuFor};
use crate::commands::apply::consent::{SerialQuestion, say};
use crate::progress::Bar;
use crate::save::Refused;

/// What the user wants.
pub(super) struct Wanted<'a> {
    args: &'a FfuArgs,
    identity: &'a FfuFor,
    facts: Image,
    content: Vec<u8>,
    mode: FfuMode,
    chunk_bytes: u32,
    is_quiet: bool,
}

impl<'a> Wanted<'a> {
    /// Reads the image.
    ///
    /// Errors: no file; empty, too large, or no whole sectors; chunks that are no whole sectors.
    pub(super) fn read(args: &'a FfuArgs, path: &Path, identity: &'a FfuFor, is_quiet: bool) -> anyhow::Result<Self> {
        let name = path.display();
        let content = crate::input::read(path, IMAGE_BYTES_MAX)?;
        let is_whole = !content.is_empty() && content.len() % 512 == 0;
        anyhow::ensure!(is_whole, "{name}: {} bytes; expected whole sectors of 512 bytes", content.len());
        let chunk = args.chunk.map_or(u64::from(CHUNK_BYTES_MAX), |chunk| chunk.0);
        let is_fit = chunk > 0 && chunk % 512 == 0 && chunk <= u64::from(CHUNK_BYTES_MAX);
        anyhow::ensure!(is_fit, "--chunk {chunk}: expected whole sectors, at most 512KiB");
        let mode = FfuMode::from(args.mode);
        anyhow::ensure!(args.chunk.is_none() || !mode.is_by_block(), "--mode {} has no --chunk", mode.name());
        let sha256 = Sha256::digest(&content).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
        let facts = Image { file: name.to_string(), size_bytes: content.len() as u64, sha256 };
        Ok(Self { args, identity, facts, content, mode, chunk_bytes: chunk as u32, is_quiet })
    }

    /// The target, as named.
    pub(super) fn target(&self) -> &'a str {
        &self.args.target
    }

    /// Whether the card can get the image; returns what its registers say.
    ///
    /// Errors: [`Refused`]: another card, other firmware, switched off for ever, no whole sectors; not supported.
    pub(super) fn check(&self, card: &CardData) -> anyhow::Result<FfuState> {
        let name = self.target();
        check_card(name, card, self.identity)?;
        let state = state(name, card)?;
        if state.supported != Some(true) {
            return Err(unable(name, "it has no firmware update in the field (SUPPORTED_MODES); nothing was sent"));
        }
        if state.disabled != Some(false) {
            return Err(refused(name, "firmware updates are switched off for ever (FW_CONFIG)"));
        }
        let Some(firmware) = &state.firmware else { return Err(refused(name, "its firmware version is not known")) };
        if let Some(version) = self.identity.version.as_deref().filter(|version| !is_version(firmware, version)) {
            let what = format!("its firmware is {}, and the image is for {version}", version_text(firmware));
            return Err(refused(name, what));
        }
        let sector = state.sector_bytes.unwrap_or(512);
        let is_whole = self.content.len() % sector as usize == 0 && self.chunk_bytes % sector == 0;
        if !is_whole || self.mode.is_by_block() && sector != 512 {
            let what = format!("it takes whole sectors of {sector} bytes, and neither image nor --chunk nor --mode");
            return Err(refused(name, format!("{what} may have others")));
        }
        Ok(state)
    }

    /// Shows what is sent and what can be lost, and asks for the serial number.
    ///
    /// Errors: [`Refused`]: the user did not agree.
    pub(super) fn ask(&self, card: &CardIdentity, state: &FfuState) -> Result<Consent, Refused> {
        let name = self.target();
        let lost = [
            "the present firmware; only an image of it brings it back, if the card takes one".to_owned(),
            "if power fails while the card installs, all content and the card itself may be lost".to_owned(),
        ];
        if !self.is_quiet {
            let [product, serial] = [&card.product, &card.serial].map(|value| value.as_deref().unwrap_or("unknown"));
            let firmware = state.firmware.as_ref().map_or("unknown".into(), version_text);
            say(&format!("{name}: {product}, serial number {serial}, firmware {firmware}"));
            let Image { file, size_bytes, sha256 } = &self.facts;
            say(&format!("  image {file}: {size_bytes} bytes, SHA-256 {sha256}"));
            say(&format!("  {}", self.way(state)));
            lost.iter().for_each(|lost| say(&format!("  lost: {lost}")));
            say("  after an interruption: the same command again; the card gets all of the image again");
        }
        let question = SerialQuestion {
            target: name,
            card,
            given: self.args.permanent.as_deref(),
            what: "a firmware update cannot be reverted",
            lost: &lost,
            is_quiet: self.is_quiet,
        };
        question.ask().map_err(Refused)
    }

    /// How the image reaches the card, and how it is installed.
    fn way(&self, state: &FfuState) -> String {
        let chunk = if self.mode.is_by_block() { 512 } else { self.chunk_bytes as usize };
        let count = self.content.len().div_ceil(chunk);
        let parts = if count == 1 { "in one transfer".into() } else { format!("in {count} transfers") };
        let most = if count == 1 { String::new() } else { format!(" of at most {}", Bytes(chunk as u64).rounded()) };
        let install = match (state.operation_codes, state.timeout_us) {
            (Some(true), Some(time)) => {
                let seconds = time as f64 / 1e6;
                format!("the card installs it at once (MODE_OPERATION_CODES), within {seconds:.1} s by its registers")
            }
            (Some(true), None) => "the card installs it at once (MODE_OPERATION_CODES)".into(),
            _ => "the card installs it at the next power cycle".into(),
        };
        format!("sent {parts}{most} (mode {}); {install}", self.mode.name())
    }

    /// A document without results yet.
    pub(super) fn document(&self, card: &CardIdentity, state: &FfuState) -> FfuDocument {
        FfuDocument {
            action: "update",
            target: self.target().into(),
            card: Some(card.clone()),
            before: Some(Registers::from(state)),
            image: Some(self.facts.clone()),
            mode: Some(self.mode.name()),
            chunk_bytes: Some(if self.mode.is_by_block() { 512 } else { self.chunk_bytes }),
            ..FfuDocument::default()
        }
    }

    /// Does it, and fills in what came of it.
    pub(super) fn carry(
        &self,
        port: &mut dyn FfuPort,
        consent: Consent,
        stop: &AtomicBool,
        document: &mut FfuDocument,
    ) {
        let order = Order { mode: self.mode, chunk_bytes: self.chunk_bytes, consent };
        let mut bar = Bar::new();
        let total = self.content.len().max(1) as f64;
        let done = carry_out(port, &self.content, &order, &mut |Event::Sends { sent_bytes }| {
            hold::reached(Point::Step, stop);
            bar.show(Some(sent_bytes as f64 / total), "firmware");
            !stop.load(Ordering::Relaxed)
        });
        bar.finish();
        let (ended, reason) = match done.ended {
            Ended::Installed => ("installed", None),
            Ended::PowerCycleDue => ("power cycle due", None),
            Ended::Stopped => ("stopped", Some("by a signal, between two commands".to_owned())),
            Ended::Refused(reason) => ("refused", Some(reason)),
            Ended::Surprise(reason) => ("surprise", Some(reason)),
            Ended::Lost(reason) => ("lost", Some(reason)),
        };
        (document.ended, document.reason) = (Some(ended), reason);
        document.sent_bytes = Some(done.sent_bytes as u64);
        document.install_sent = Some(done.is_install_sent);
        document.now = done.state.as_ref().map(Registers::from);
        document.next = self.next(document);
    }

    /// What to do next.
    fn next(&self, document: &FfuDocument) -> Vec<String> {
        let word = |name: &std::ffi::OsStr, or: &str| crate::shell::word(name).unwrap_or_else(|| or.into());
        let target = word(self.args.target.as_ref(), "TARGET");
        let FfuFor { maker, product, version } = self.identity;
        let before = document.before.as_ref().and_then(|before| before.firmware.clone()).unwrap_or_default();
        let named = |version: &str| word(format!("{maker:02x}:{product}:{version}").as_ref(), "MID:PNM:VERSION");
        let compare = format!("compare: emmclab ffu {target} --verify --for {}", named(&before));
        let cycle = "power the card off and on".to_owned();
        if matches!(document.ended, Some("installed" | "power cycle due")) {
            return vec![cycle, compare];
        }
        let serial = document.card.as_ref().and_then(|card| card.serial.clone()).unwrap_or_default();
        let image = word(self.facts.file.as_ref(), "IMAGE");
        let identity =
            version.as_deref().map_or_else(|| word(format!("{maker:02x}:{product}").as_ref(), "MID:PNM"), named);
        let mut again = format!("emmclab ffu {target} {image} --for {identity} --mode {}", self.mode.name());
        if self.args.chunk.is_some() {
            again += &format!(" --chunk {}s", self.chunk_bytes / 512);
        }
        let again = format!("send all of it again: {again} --permanent {serial}");
        let has_operations = document.before.as_ref().is_some_and(|before| before.operation_codes == Some(true));
        match (document.ended, document.install_sent) {
            // It may have been installed, or the power cycle may do it.
            (_, Some(true)) => vec![cycle, compare, again],
            _ if !has_operations => vec![cycle, compare, again],
            (Some("lost" | "surprise"), _) => vec![cycle, again],
            _ => vec![again],
        }
    }
}

/// Whether the image is for this card.
///
/// Errors: [`Refused`]: another card, or one whose CID is not known.
pub(super) fn check_card(name: &str, card: &CardData, wanted: &FfuFor) -> anyhow::Result<()> {
    let Some(Cid(cid)) = card.cid else { return Err(refused(name, "its CID is not known")) };
    let identity = Cid(cid).decode(CardKind::Emmc, None);
    let (maker, product) = (identity.manufacturer_id, identity.product_name.as_str());
    if maker != wanted.maker || product.trim_end() != wanted.product.trim_end() {
        let found = format!("{maker:02x}:{}", product.trim_end());
        let what = format!("the card is {found}, and --for says {:02x}:{}", wanted.maker, wanted.product);
        return Err(refused(name, what));
    }
    Ok(())
}
