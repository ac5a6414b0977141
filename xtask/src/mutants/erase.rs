//! Mutants of an erase: what is refused before it, how far it came, and what is read back.

use super::Mutant;

const ANALYSIS: &str = "-p emmc-analysis --lib";
const EMMCLAB_IT: &str = "-p emmclab --test it";

pub(super) const END_ROUNDED_UP: Mutant = Mutant {
    name: "end of an erase rounded up to a group",
    file: "crates/emmc-analysis/src/erase/offer.rs",
    anchor: "(rounded != [from, to]).then_some(rounded)",
    instead: "(rounded[0] != from).then_some(rounded)",
    killer: (ANALYSIS, "erase::tests::ranges_are"),
};

pub(super) const PROTECTION_OVERLOOKED: Mutant = Mutant {
    name: "temporary protection of a group overlooked",
    file: "crates/emmc-analysis/src/erase/carry.rs",
    anchor: "filter(|index| kinds >> (2 * index) & 3 != 0)",
    instead: "filter(|index| kinds >> (2 * index) & 3 > 1)",
    killer: (ANALYSIS, "erase::tests::every_kind"),
};

pub(super) const PROTECTION_NOT_REFUSED: Mutant = Mutant {
    name: "erase of protected groups not refused",
    file: "crates/emmclab/src/commands/erase/job.rs",
    anchor: "let Some([from, to]) = found.first() else { return Ok(()) };",
    instead: "let Some([from, to]) = found.first().filter(|_| self.kinds.is_empty()) else { return Ok(()) };",
    killer: (EMMCLAB_IT, "erase_areas::a_protected"),
};

pub(super) const BOOT_OF_THE_OTHER: Mutant = Mutant {
    name: "protection of the other boot area reported",
    file: "crates/emmc-analysis/src/erase/area.rs",
    anchor: "status >> (2 * number) & 3",
    instead: "status >> (2 * (1 - number)) & 3",
    killer: (ANALYSIS, "erase::tests::protection_of"),
};

pub(super) const RESUMED_TOO_FAR: Mutant = Mutant {
    name: "resume offset of an erase a step too far",
    file: "crates/emmc-analysis/src/erase/carry.rs",
    anchor: "                reach.ended = Ended::Stopped;\n",
    instead: "                (reach.ended, reach.to_bytes) = (Ended::Stopped, chunk[1]);\n",
    killer: (ANALYSIS, "erase::tests::every_end"),
};

pub(super) const ERROR_TOO_FAR: Mutant = Mutant {
    name: "resume offset behind an erase that failed",
    file: "crates/emmc-analysis/src/erase/carry.rs",
    anchor: "                reach.ended = error.into();\n",
    instead: "                (reach.ended, reach.to_bytes) = (error.into(), chunk[1]);\n",
    killer: (ANALYSIS, "erase::tests::every_end"),
};

pub(super) const SAMPLES_NOT_COMPARED: Mutant = Mutant {
    name: "samples after an erase not compared",
    file: "crates/emmc-analysis/src/erase/sample.rs",
    anchor: "match (is_erased(after), before == after) {",
    instead: "match (is_erased(after) || held, before == after) {",
    killer: (ANALYSIS, "erase::tests::samples_show"),
};
