//! The register writes of a plan in their required order, and the checks afterwards.

use emmc_regs::ext_csd::{Field, reg};
use serde::Serialize;

use super::case::Case;
use super::certainty::Certainty;
use super::layout::Layout;

/// The purpose of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Selects high-capacity groups until the next power cycle.
    GroupDefinition,
    /// Start of the enhanced user area.
    EnhStart,
    /// Size of the enhanced user area.
    EnhSize,
    /// Size of a general purpose partition.
    GpSize,
    /// Which areas are enhanced.
    Attributes,
    /// Extended attributes of the partitions.
    ExtAttributes,
    /// Write reliability of the areas.
    WriteReliability,
    /// Closes all of these registers permanently.
    Commit,
}

/// One byte of EXT_CSD to be written with CMD6.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegisterWrite {
    /// Byte of EXT_CSD, 0 to 191.
    pub offset: u16,
    /// The register's name.
    pub name: &'static str,
    /// Which byte of the register, lowest first.
    pub index: u16,
    /// What it holds; absent where it is not known.
    pub old: Option<u8>,
    /// What is to be written.
    pub new: u8,
    /// Whether the write is irreversible.
    pub one_time: bool,
    /// Its purpose.
    pub step: Step,
    /// What CMD8 must return before the next write; anything else is a reason to stop before the commit.
    pub reads_back: u8,
}

/// Steps after the last write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AfterCommit {
    /// What to do, in order.
    pub steps: Vec<String>,
    /// How long the first initialisation may take, in milliseconds; absent where the part does not say.
    pub wait_ms: Option<u64>,
    /// What to read back after the power cycle.
    pub checks: Vec<Check>,
}

/// A register to read back after the power cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// First byte of EXT_CSD.
    pub offset: u16,
    /// Bytes, lowest first.
    pub width: u16,
    /// The register's name.
    pub name: &'static str,
    /// What it should hold.
    pub expected: u64,
    /// Whether the value must match exactly or approximately.
    pub certainty: Certainty,
}

/// The writes of a request that breaks no rule; only bytes that belong to the request.
pub(super) fn writes(case: &Case) -> Option<Vec<RegisterWrite>> {
    let group = case.facts.group?;
    let mut list = List { case, writes: Vec::new() };
    // Sizes are meaningless without it, and every power cycle clears it: it is written even if it reads 1.
    list.add(reg::ERASE_GROUP_DEF, 1, Step::GroupDefinition);
    if let Some(piece) = case.enh {
        list.add(reg::ENH_START_ADDR, u64::from(case.enh_start_register()?), Step::EnhStart);
        list.add(reg::ENH_SIZE_MULT, piece.groups(group)?, Step::EnhSize);
    }
    for (index, _, piece) in case.gps() {
        list.add(reg::GP_SIZE_MULT[index], piece.groups(group)?, Step::GpSize);
    }
    if case.pieces().next().is_some() {
        list.add(reg::PARTITIONS_ATTRIBUTE, u64::from(case.attributes()), Step::Attributes);
    }
    for (index, byte) in (0..).zip(case.ext_attributes().to_le_bytes()).filter(|(_, byte)| *byte != 0) {
        list.add_byte(reg::EXT_PARTITIONS_ATTRIBUTE, index, byte, Step::ExtAttributes);
    }
    if case.request.wrrel.is_some() && case.facts.wr_rel_set() != case.wr_rel_wanted() {
        list.add(reg::WR_REL_SET, u64::from(case.wr_rel_wanted()?), Step::WriteReliability);
    }
    list.add(reg::PARTITION_SETTING_COMPLETED, 1, Step::Commit);
    Some(list.writes)
}

struct List<'a> {
    case: &'a Case<'a>,
    writes: Vec<RegisterWrite>,
}

impl List<'_> {
    fn add(&mut self, field: &'static Field, value: u64, step: Step) {
        for (index, new) in (0..field.width).zip(value.to_le_bytes()) {
            self.add_byte(field, index, new, step);
        }
    }

    fn add_byte(&mut self, field: &'static Field, index: u16, new: u8, step: Step) {
        let offset = field.offset + index;
        self.writes.push(RegisterWrite {
            offset,
            name: field.name,
            index,
            old: self.case.facts.ext_csd.byte(offset),
            new,
            one_time: field.one_time_mask(index) != 0,
            step,
            reads_back: new,
        });
    }
}

/// What must follow the commit.
pub(super) fn after_commit(case: &Case, layout: &Layout, writes: &[RegisterWrite]) -> AfterCommit {
    let wait_ms = case.facts.info.init_timeout_ap_ms.filter(|wait_ms| *wait_ms > 0);
    let wait = match wait_ms {
        Some(wait_ms) => format!("wait up to {wait_ms} ms for the first initialisation (INI_TIMEOUT_AP)"),
        None => "wait several seconds for the first initialisation; INI_TIMEOUT_AP does not give the time".into(),
    };
    let steps = vec![
        "write nothing else: after PARTITION_SETTING_COMPLETED no partitioning register can change".into(),
        "switch the card's power off and on; a reboot alone may not be enough".into(),
        wait,
        format!("set {} to 1 again, as at every power-up (Linux and U-Boot do)", reg::ERASE_GROUP_DEF),
        "read EXT_CSD back and compare it with the checks".into(),
        "create new partitions and filesystems".into(),
    ];
    AfterCommit { steps, wait_ms, checks: checks(layout, writes) }
}

fn checks(layout: &Layout, writes: &[RegisterWrite]) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    for write in writes.iter().filter(|write| write.step != Step::GroupDefinition) {
        let (offset, name, byte) = (write.offset, write.name, u64::from(write.new));
        match checks.last_mut().filter(|check| check.name == name && check.offset + check.width == offset) {
            Some(check) => {
                check.expected |= byte << (8 * check.width);
                check.width += 1;
            }
            None => checks.push(Check { offset, width: 1, name, expected: byte, certainty: Certainty::Exact }),
        }
    }
    let (expected, certainty) = (layout.user_sectors.0, layout.user_certainty);
    let Field { offset, width, name, .. } = *reg::SEC_COUNT;
    checks.push(Check { offset, width, name, expected, certainty });
    checks
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{planned, s0j56, with};
    use super::*;

    fn bytes(writes: &[RegisterWrite]) -> Vec<(u16, u8)> {
        writes.iter().map(|write| (write.offset, write.new)).collect()
    }

    #[test]
    fn writes_start_with_the_lowest_byte_and_end_with_the_commit() {
        let plan = planned(&with(&s0j56(), &[(167, 1, 0x1e)]), "0s:max", &[], Some("on"));
        let expected = [
            (175, 1),
            (136, 0),
            (137, 0),
            (138, 0),
            (139, 0),
            (140, 0xab),
            (141, 0x03),
            (142, 0),
            (156, 1),
            (167, 0x1f),
            (155, 1),
        ];
        assert_eq!(bytes(&plan.writes), expected);
        let one_time: Vec<bool> = plan.writes.iter().map(|write| write.one_time).collect();
        assert_eq!(one_time, [&[false][..], &[true; 10]].concat());
        assert!(plan.writes.iter().all(|write| write.reads_back == write.new && write.old.is_some()));
        assert_eq!(plan.writes[9].old, Some(0x1e));
        let reliable_already = planned(&s0j56(), "0s:max", &[], Some("on"));
        assert!(reliable_already.ok && reliable_already.writes.iter().all(|write| write.offset != 167));
    }

    #[test]
    fn partitions_are_written_with_their_attributes_only() {
        let plan =
            planned(&s0j56(), "16384s:8MiB", &["2:16MiB:enh", "1:524288s", "4:8MiB:sys", "3:8MiB:nonpersist"], None);
        let expected: [(u16, &[u8]); 7] = [
            (175, &[1]),
            (136, &[0, 0x40, 0, 0]),
            (140, &[1, 0, 0]),
            (143, &[32, 0, 0, 2, 0, 0, 1, 0, 0, 1, 0, 0]),
            (156, &[0b101]),
            (53, &[0x12]),
            (155, &[1]),
        ];
        let expected: Vec<(u16, u8)> =
            expected.iter().flat_map(|(first, values)| (*first..).zip(values.iter().copied())).collect();
        assert_eq!(bytes(&plan.writes), expected, "{:?}", plan.refusals);
        let plain = planned(&s0j56(), "", &["3:8MiB"], None);
        assert_eq!(bytes(&plain.writes), [(175, 1), (149, 1), (150, 0), (151, 0), (156, 0), (155, 1)]);
        let reliable = planned(&s0j56(), "", &[], Some("off"));
        assert_eq!(bytes(&reliable.writes), [(175, 1), (167, 0x1e), (155, 1)]);
    }

    #[test]
    fn read_back_joins_the_bytes_of_a_register() {
        let plan = planned(&s0j56(), "0s:max", &["4:8MiB:sys"], Some("gp4=off"));
        let after = plan.after.unwrap();
        let checks: Vec<_> = after.checks.iter().map(|check| (check.offset, check.width, check.expected)).collect();
        let user = plan.layout.unwrap().user_sectors.0;
        let expected = [
            (136, 4, 0),
            (140, 3, 938),
            (152, 3, 1),
            (156, 1, 1),
            (53, 1, 0x10),
            (167, 1, 0x0f),
            (155, 1, 1),
            (212, 4, user),
        ];
        assert_eq!(checks, expected);
        assert_eq!(after.wait_ms, Some(3000));
        assert_eq!(after.checks.iter().filter(|check| check.certainty == Certainty::Estimated).count(), 1);
    }
}
