//! A card of this machine as a source.
//!
//! Read only: the device is opened O_RDONLY, which also keeps udev from announcing a change when it is closed, and only
//! CMD8 and CMD13 are sent, CMD56 on request. The kernel holds other requests back for the few milliseconds of each.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use emmc_port::{CardData, Format, SourceError};
use emmc_regs::CardKind;
use emmc_regs::ext_csd::{ExtCsd, reg};

use crate::card_name::CardName;
use crate::gather::{self, missing};
use crate::ioctl::{self, BLOCK_BYTES, BlockRead};
use crate::sysfs::{self, note};
use crate::tree::Tree;

/// What the kernel demands for MMC_IOC_CMD.
const RAWIO: &str = "CAP_SYS_RAWIO (root), and not from inside a container that lacks it";
const NODE: &str = "root or the group of the device (disk)";
/// What Linux gives every eMMC as its address.
const EMMC_RCA: u16 = 1;

/// `/dev/mmcblkN`, for every name of the card.
#[derive(Clone, Debug)]
pub struct LiveCard {
    source: String,
}

impl LiveCard {
    /// The card that `source` names; it is not opened yet.
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into() }
    }

    /// Requests vendor blocks of the card: (opcode, argument, bytes) each, sent in this sequence.
    ///
    /// Only reads are sent: CMD56 with bit 0 of its argument set, and CMD8 to an eMMC, 512 bytes each. Whether a card
    /// takes an argument well is for the caller to know.
    ///
    /// A card that fails at a step is not asked on: there are fewer replies than steps then.
    ///
    /// Errors: any step that is not such a read, before anything is sent; the device cannot be opened; the first step
    /// fails.
    pub fn read_vendor(&self, steps: &[(u8, u32, usize)]) -> Result<Vec<Vec<u8>>, SourceError> {
        let name = self.card_name()?;
        let is_sd = || sysfs::kind_of(&Tree::live(), &name.disk) == Some(CardKind::Sd);
        let commands: Option<Vec<BlockRead>> = steps.iter().map(|&step| pure_read(step, &is_sd)).collect();
        let refused = || SourceError::Unsupported {
            name: self.source.clone(),
            reason: format!(
                "vendor health: not every step of {steps:x?} is a read of {BLOCK_BYTES} bytes; nothing was sent"
            ),
        };
        let commands = commands.ok_or_else(refused)?;
        let failed = |what: &str, error: io::Error, need| SourceError::Read {
            name: self.source.clone(),
            reason: missing(what, &name.node, &error, need),
        };
        let device = open(&name.node).map_err(|error| failed("vendor health", error, NODE))?;
        let mut replies = Vec::new();
        for (command, (opcode, argument, _)) in commands.into_iter().zip(steps) {
            match ioctl::read_block(&device, command) {
                Ok(reply) => replies.push(reply.to_vec()),
                Err(_) if !replies.is_empty() => break,
                Err(error) => return Err(failed(&format!("CMD{opcode} argument {argument:#010x}"), error, RAWIO)),
            }
        }
        Ok(replies)
    }

    fn card_name(&self) -> Result<CardName, SourceError> {
        CardName::parse(&self.source).ok_or_else(|| SourceError::Unsupported {
            name: self.source.clone(),
            reason: "not the name of a card: expected mmcblkN or /dev/mmcblkN".into(),
        })
    }
}

impl LiveCard {
    /// Reads all values of the card, without changing its state.
    ///
    /// Errors: there is no such card, or it does not answer.
    pub fn read(&self) -> Result<CardData, SourceError> {
        let name = self.card_name()?;
        let tree = Tree::live();
        let device = open(&name.node);
        if device.as_ref().is_err_and(is_absent) && tree.names(&tree.block(&name.disk)).is_err() {
            return Err(gather::no_such_card(&tree, &self.source, "this machine"));
        }
        let mut data = CardData::new(self.source.clone(), Format::Live);
        if let Some(origin) = data.origins.first_mut() {
            // Whole seconds; `Display` writes RFC 3339.
            let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second());
            origin.taken_at = now.ok().map(|now| now.to_string());
        }
        if let Some(part) = &name.part {
            note(&mut data, [format!("{part} is a part of the card {}, which is read as a whole", name.disk)]);
        }
        let debugfs = gather::gather(&tree, &name.disk, &mut data);
        match device {
            Ok(device) => ask(&device, &name.node, &mut data),
            Err(error) => note(&mut data, [missing("CMD8 and CMD13", &name.node, &error, NODE)]),
        }
        if let Some(debugfs) = debugfs {
            gather::registers_of_debugfs(&tree, &debugfs, &mut data);
        }
        if data.ext_csd.is_none() {
            gather::ext_csd_of_sysfs(&mut data);
        }
        Ok(data)
    }
}

impl LiveCard {
    /// Reads what sysfs and debugfs have of the card, without opening its device and without a command of ours. The
    /// kernel reads EXT_CSD for debugfs.
    ///
    /// Errors: there is no such card.
    pub fn read_attributes(&self) -> Result<CardData, SourceError> {
        let name = self.card_name()?;
        let tree = Tree::live();
        if tree.names(&tree.block(&name.disk)).is_err() {
            return Err(gather::no_such_card(&tree, &self.source, "this machine"));
        }
        let mut data = CardData::new(self.source.clone(), Format::Live);
        if let Some(debugfs) = gather::gather(&tree, &name.disk, &mut data) {
            gather::registers_of_debugfs(&tree, &debugfs, &mut data);
        }
        if data.ext_csd.is_none() {
            gather::ext_csd_of_sysfs(&mut data);
        }
        Ok(data)
    }
}

/// Sends CMD8 and CMD13.
///
/// On an SD card CMD8 has another meaning and is illegal in this state; its CMD13 needs the address from sysfs.
fn ask(device: &File, node: &Path, data: &mut CardData) {
    if data.kind != Some(CardKind::Sd) {
        match ioctl::read_block(device, BlockRead::SEND_EXT_CSD) {
            Ok(mut block) => {
                queue_as_it_runs(&mut block, data);
                data.ext_csd = Some(ExtCsd::from_bytes(block));
                data.kind = Some(CardKind::Emmc);
            }
            Err(error) => note(data, [missing("EXT_CSD by CMD8", node, &error, RAWIO)]),
        }
    }
    let rca = data.rca.or((data.kind == Some(CardKind::Emmc)).then_some(EMMC_RCA));
    match rca.map(|rca| ioctl::read_status(device, rca)) {
        Some(Ok(status)) => data.status = Some(status),
        Some(Err(error)) => note(data, [missing("card status by CMD13", node, &error, RAWIO)]),
        None => note(data, ["card status by CMD13: the card's address is unknown".into()]),
    }
}

/// Corrects CMDQ_MODE_EN: Linux takes a card out of its command queue for each command of a program, so the read value
/// is 0 even if the queue is in use.
///
/// Source: Linux `drivers/mmc/core/block.c`, `mmc_blk_mq_issue_rq`, `MMC_DRV_OP_IOCTL`; `cmdq_en` is the kernel's
/// value.
fn queue_as_it_runs(block: &mut [u8; BLOCK_BYTES], data: &mut CardData) {
    let is_on = data.sysfs.get("cmdq_en").is_some_and(|text| text.trim() == "1");
    if is_on && block[reg::CMDQ_MODE_EN.index()] == 0 {
        block[reg::CMDQ_MODE_EN.index()] = 1;
        note(
            data,
            ["CMDQ_MODE_EN is 1 as sysfs cmdq_en says: Linux switches the queue off while a program asks".into()],
        );
    }
}

/// Opens a card's node for reading.
fn open(node: &Path) -> io::Result<File> {
    let device = File::open(node)?;
    if !device.metadata()?.file_type().is_block_device() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a block device"));
    }
    Ok(device)
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENXIO)
}

/// The command of a step, if it is one of the two that read.
fn pure_read((opcode, argument, bytes): (u8, u32, usize), is_sd: &dyn Fn() -> bool) -> Option<BlockRead> {
    match (opcode, argument) {
        _ if bytes != BLOCK_BYTES => None,
        (56, argument) => BlockRead::gen_cmd(argument),
        // To an SD card CMD8 sets the voltage.
        (8, argument) if !is_sd() => Some(BlockRead::send_ext_csd(argument)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_disabled_by_the_query_is_reported_as_the_kernel_runs_it() {
        for (cmdq_en, read, told) in [("1\n", 0, 1), ("0\n", 0, 0), ("1\n", 1, 1), ("", 0, 0)] {
            let mut data = CardData::new("mmcblk0", Format::Live);
            data.sysfs.insert("cmdq_en".into(), cmdq_en.into());
            let mut block = [0; BLOCK_BYTES];
            block[reg::CMDQ_MODE_EN.index()] = read;
            queue_as_it_runs(&mut block, &mut data);
            assert_eq!(block[reg::CMDQ_MODE_EN.index()], told, "{cmdq_en:?}, {read}");
            assert_eq!(data.origins[0].notes.len(), usize::from(read != told), "{cmdq_en:?}, {read}");
        }
    }

    #[test]
    fn only_reads_are_accepted_as_reads() {
        for (step, is_sd, allowed) in [
            ((56, 1, 512), false, true),
            ((56, 0x4b53_5461, 512), true, true),
            ((8, 0, 512), false, true),
            ((8, 0, 512), true, false),
            ((8, 0x5345_4852, 512), false, true),
            ((8, 0x1aa, 512), true, false),
            ((56, 0, 512), false, false),
            ((56, 0x10, 512), false, false),
            ((56, 1, 1024), false, false),
            ((56, 1, 0), false, false),
            ((6, 0x03a4_0100, 512), false, false),
            ((62, 1, 512), false, false),
            ((13, 0x0001_0000, 512), false, false),
            ((38, 1, 512), false, false),
        ] {
            assert_eq!(pure_read(step, &|| is_sd).is_some(), allowed, "{step:?}");
        }
    }

    #[test]
    fn an_invalid_step_prevents_all_steps() {
        let card = LiveCard::new("/dev/mmcblk250");
        let error = card.read_vendor(&[(56, 1, 512), (6, 0x03b7_0100, 512)]).unwrap_err();
        assert!(matches!(&error, SourceError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("nothing was sent"), "{error}");
        assert!(matches!(card.read_vendor(&[(56, 1, 512)]), Err(SourceError::Read { .. })));
    }

    #[test]
    fn a_missing_card_is_reported() {
        let error = LiveCard::new("mmcblk250").read().unwrap_err().to_string();
        assert!(error.starts_with("mmcblk250: cannot read: no such card; this machine has "), "{error}");
        let error = LiveCard::new("sda").read().unwrap_err().to_string();
        assert!(error.contains("expected mmcblkN"), "{error}");
    }
}
