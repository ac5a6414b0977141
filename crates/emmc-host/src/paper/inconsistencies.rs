use serde::Serialize;

/// Where the paper contradicts itself, its figures, or the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inconsistency {
    /// What is printed.
    pub printed: &'static str,
    /// What contradicts it.
    pub against: &'static str,
}

const fn is(printed: &'static str, against: &'static str) -> Inconsistency {
    Inconsistency { printed, against }
}

pub(super) const INCONSISTENCIES: [Inconsistency; 14] = [
    is(
        "MB/s and KB throughout",
        "every speed fits MiB/s and KiB; with 10^6 the first row would be 62.4 and 191.1, not 60 and 182",
    ),
    is(
        "direct sequential write: 81",
        "128 KiB / 1554 us = 80.4 MiB/s; spans that round to the printed ones give 80.36 to 80.52",
    ),
    is("random write: 30.23", "64 KiB / 2066 us = 30.25 MiB/s"),
    is(
        "random write, many threads: 36.58",
        "64 KiB / 1715 us = 36.44 MiB/s, the convention that gives 84.8 for random reads",
    ),
    is("sync sequential write measured at 36 KB/s (text)", "Table 2: 36 MB/s"),
    is("sync sequential write capped at around 200 (text)", "Table 2: 182"),
    is(
        "direct against sync writes without hardware time: a factor of three",
        "644 / 182 = 3.54, and 3.22 with the text's 200",
    ),
    is(
        "a hardware time of 700 us brings 50 %",
        "90.2 against the theoretical 59.5 is 51.5 %; the measured speed was 36",
    ),
    is("direct sequential read: 442 (text)", "Table 2: 443; computed 443.3"),
    is("64GB Zynq", "64 KB, the chunk of Table 3, is meant"),
    is(
        "Pre_D x N2 + T_D + Pst_D",
        "Pre_D x N: the 2 is a footnote's mark; the exact form is pre + hw + post + (N - 1) P",
    ),
    is(
        "direct sequential read measured at 175, theoretical 173",
        "the sum of three mean spans is no upper bound: their rounding and the 2 % of the tracing are as large as the difference",
    ),
    is(
        "sync sequential write measured at 36, theoretical 60",
        "the three spans leave out the journal's commit and the flush of the card's cache",
    ),
    is(
        "software's share of Zynq reads: ~65 (sync), 56~60 (direct)",
        "Table 3's random read gives 68.1 % and does not say which it is",
    ),
];
