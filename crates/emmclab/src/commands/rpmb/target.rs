//! The RPMB that the user named: of a card of this machine, or of a virtual card in a folder.

use std::io::ErrorKind;
use std::path::Path;

use emmc_analysis::plan::CardIdentity;
use emmc_linux::LiveRpmb;
use emmc_port::PortError;
use emmc_port::rpmb::{RpmbCommand, RpmbPort, RpmbShape, has_secure_write_protection};
use emmc_port::{CardData, SourceError};
use emmc_regs::CardKind;
#[cfg(feature = "sim")]
use emmc_regs::r1::R1;
use emmc_regs::rpmb::{BLOCKS_MAX, Frame};

#[cfg(feature = "sim")]
use crate::commands::apply::folder::FolderPort;
use crate::save::Refused;

/// What carries requests.
enum Port {
    Live(LiveRpmb),
    #[cfg(feature = "sim")]
    Folder(Box<FolderPort>),
}

/// An RPMB that nobody else of this program uses.
pub(super) struct Target {
    port: Port,
    /// What identifies the card.
    pub(super) card: CardIdentity,
    /// What its registers say of its RPMB.
    pub(super) shape: RpmbShape,
    /// SECURE_WP_SUPPORT.
    pub(super) has_protection: bool,
    /// A device, whose name must be typed before its content is lost.
    pub(super) is_device: bool,
    /// The card's name, as the user must type it.
    pub(super) name: String,
}

impl RpmbPort for Target {
    fn exchange(&mut self, command: &RpmbCommand) -> Result<Vec<Frame>, PortError> {
        match &mut self.port {
            Port::Live(rpmb) => rpmb.exchange(command),
            #[cfg(feature = "sim")]
            Port::Folder(port) => port.exchange(command),
        }
    }
}

/// An error of the system or the card, with the name of what failed.
pub(super) fn unable(name: &str, reason: impl ToString) -> anyhow::Error {
    SourceError::Unsupported { name: name.into(), reason: reason.to_string() }.into()
}

/// Opens the RPMB of a target, works on it, and powers a virtual card off whatever comes of the work.
///
/// Errors: no card, no RPMB, no permission; [`Refused`]: in use, a partition; those of `work`.
pub(super) fn with<T>(name: &str, work: impl FnOnce(&mut Target) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let virtual_card = name.strip_prefix("sim:").or_else(|| Path::new(name).is_dir().then_some(name));
    let mut target = match virtual_card {
        Some(folder) => Target::of_folder(name, folder)?,
        None => Target::of_device(name)?,
    };
    let done = work(&mut target);
    let finished = target.finish();
    let done = done?;
    finished?;
    Ok(done)
}

/// The shape of a card's RPMB.
fn shape(name: &str, card: &CardData) -> anyhow::Result<RpmbShape> {
    if card.kind == Some(CardKind::Sd) {
        return Err(unable(name, "an SD card, which has no RPMB"));
    }
    let Some(ext_csd) = &card.ext_csd else {
        return Err(unable(name, "its EXT_CSD cannot be read: requires root; nothing was sent"));
    };
    let shape = RpmbShape::of(ext_csd).ok_or_else(|| unable(name, "it has no RPMB (RPMB_SIZE_MULT)"))?;
    Ok(RpmbShape { blocks: shape.blocks.min(BLOCKS_MAX), ..shape })
}

impl Target {
    fn of_device(name: &str) -> anyhow::Result<Self> {
        let Some(node) = emmc_linux::card_node(name) else {
            return Err(unable(
                name,
                "expected an eMMC, /dev/mmcblkN or /dev/mmcblkNrpmb, or the folder of a virtual card",
            ));
        };
        let disk = node.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let rpmb = node.with_file_name(format!("{disk}rpmb"));
        if let Some(part) = emmc_linux::card_part(name).filter(|part| *part != format!("{disk}rpmb")) {
            let what = format!("{name}: {part} is another part of the card: name {}; nothing was sent", rpmb.display());
            return Err(Refused(what).into());
        }
        let port = LiveRpmb::open(&rpmb).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => {
                Refused(format!("{}: in use by another process; nothing was sent", rpmb.display())).into()
            }
            ErrorKind::PermissionDenied => unable(name, format!("{error}: requires root; nothing was sent")),
            ErrorKind::NotFound if node.exists() => unable(name, format!("it has no RPMB: no {}", rpmb.display())),
            _ => unable(name, format!("{}: {error}; nothing was sent", rpmb.display())),
        })?;
        let card = crate::source::open_one(&node.to_string_lossy(), None)?;
        let shape = shape(name, &card)?;
        Ok(Self { is_device: true, name: disk, ..Self::new(name, Port::Live(port), &card, shape) })
    }

    #[cfg(feature = "sim")]
    fn of_folder(name: &str, folder: &str) -> anyhow::Result<Self> {
        let mut port = FolderPort::open(name, folder)?;
        let card = port.identify(name)?;
        let is_locked = port.with(13, emmc_sim::lock::status).is_ok_and(|status| status.contains(R1::IS_LOCKED));
        if is_locked {
            port.0.finish()?;
            return Err(unable(
                name,
                "the card is locked by a password, and takes no requests to its RPMB; nothing was sent",
            ));
        }
        let shape = match shape(name, &card) {
            Ok(shape) => shape,
            Err(error) => {
                port.0.finish()?;
                return Err(error);
            }
        };
        Ok(Self::new(name, Port::Folder(Box::new(port)), &card, shape))
    }

    fn new(name: &str, port: Port, card: &CardData, shape: RpmbShape) -> Self {
        let has_protection = card.ext_csd.as_ref().is_some_and(has_secure_write_protection);
        Self { port, card: CardIdentity::of(card), shape, has_protection, is_device: false, name: name.into() }
    }

    #[cfg(not(feature = "sim"))]
    fn of_folder(name: &str, _: &str) -> anyhow::Result<Self> {
        Err(unable(name, "this build has no virtual cards (feature `sim`)"))
    }

    fn finish(self) -> anyhow::Result<()> {
        match self.port {
            Port::Live(_) => Ok(()),
            #[cfg(feature = "sim")]
            Port::Folder(port) => Ok(port.0.finish()?),
        }
    }
}
