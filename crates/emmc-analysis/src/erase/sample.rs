//! Whether an erase shows: samples that were read before and after.

use serde::Serialize;

use super::EraseKind;

/// A place that was read before and after. Nothing where it could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Where. Unit: bytes.
    pub offset_bytes: u64,
    /// Its content before.
    pub before: Option<Vec<u8>>,
    /// Its content after.
    pub after: Option<Vec<u8>>,
}

/// Whether the target did what it reported as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// What was there is gone.
    Obeyed,
    /// What was there is still there, or else something that no erase leaves.
    Ignored,
    /// Reading cannot show it.
    NotVisible,
}

/// What was read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verification {
    /// Places that were read before and after.
    pub samples: usize,
    /// Those that held content before: any other byte than erased memory reads as.
    pub held_content: usize,
    /// Those that read as erased memory afterwards.
    pub erased: usize,
    /// Those with content that read as before.
    pub unchanged: usize,
    /// Those that read as neither.
    pub other: usize,
    /// Those that could not be read.
    pub unreadable: usize,
    /// Where the first one lies that is not erased. Unit: bytes.
    pub first_kept_bytes: Option<u64>,
    /// The verdict.
    pub verdict: Verdict,
    /// The same in a sentence.
    pub what: String,
}

/// Places for samples: the start and the end of each range, and evenly in between; multiples of `sample_bytes`.
pub fn positions(ranges: &[[u64; 2]], sample_bytes: u64, count: u64) -> Vec<u64> {
    let total: u64 = ranges.iter().map(|[from, to]| to - from).sum();
    let mut all = Vec::new();
    for [from, to] in ranges {
        let first = from.next_multiple_of(sample_bytes);
        let Some(last) = (to / sample_bytes).checked_sub(1).map(|index| index * sample_bytes) else { continue };
        if last < first {
            continue;
        }
        let own = (u128::from(count) * u128::from(to - from) / u128::from(total.max(1))).max(2) as u64 - 1;
        let step = |index: u64| (u128::from(last - first) * u128::from(index) / u128::from(own)) as u64;
        all.extend((0..=own).map(|index| first + step(index) / sample_bytes * sample_bytes));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Judges samples. `erased`: the bytes that erased memory may read as.
pub fn verify(kind: EraseKind, erased: &[u8], samples: &[Sample]) -> Verification {
    let is_erased = |content: &[u8]| erased.iter().any(|byte| content.iter().all(|found| found == byte));
    let mut found = Verification {
        samples: samples.len(),
        held_content: 0,
        erased: 0,
        unchanged: 0,
        other: 0,
        unreadable: 0,
        first_kept_bytes: None,
        verdict: Verdict::NotVisible,
        what: String::new(),
    };
    for sample in samples {
        let (Some(before), Some(after)) = (&sample.before, &sample.after) else {
            found.unreadable += 1;
            continue;
        };
        let held = !is_erased(before);
        found.held_content += usize::from(held);
        match (is_erased(after), before == after) {
            (true, _) => found.erased += 1,
            (false, true) => found.unchanged += 1,
            (false, false) => found.other += 1,
        }
        if !is_erased(after) && found.first_kept_bytes.is_none() {
            found.first_kept_bytes = Some(sample.offset_bytes);
        }
    }
    (found.verdict, found.what) = judged(kind, &found);
    found
}

fn judged(kind: EraseKind, found: &Verification) -> (Verdict, String) {
    let Verification { samples, held_content, erased, unchanged, other, unreadable, .. } = *found;
    let name = kind.name();
    if kind == EraseKind::Sanitize {
        let what = match other + erased.saturating_sub(samples - held_content - unreadable) {
            0 => format!("{samples} samples read as before: what is mapped stays; what was removed cannot be read"),
            changed => {
                return (Verdict::Ignored, format!("{changed} of {samples} samples changed: sanitize keeps them"));
            }
        };
        return (Verdict::NotVisible, what);
    }
    let read = samples - unreadable;
    if held_content == 0 && other == 0 {
        let what = format!("all {read} samples read as erased memory, before as well as after: nothing shows");
        return (Verdict::NotVisible, what);
    }
    let of = format!("of {held_content} samples with content");
    match kind {
        EraseKind::Discard if unchanged == held_content => {
            let what = "the standard permits that, and all of the content is still there";
            (Verdict::Ignored, format!("accepted and ignored: {unchanged} {of} read as before; {what}"))
        }
        EraseKind::Discard => {
            (Verdict::Obeyed, format!("{unchanged} {of} read as before, the others do not: it obeys"))
        }
        _ if unchanged == held_content && other == 0 => {
            (Verdict::Ignored, format!("accepted and ignored: {unchanged} {of} read as before, after {name}"))
        }
        _ if unchanged + other > 0 => {
            let kept = unchanged + other;
            (Verdict::Ignored, format!("{kept} of {read} samples do not read as erased memory after {name}"))
        }
        _ => (Verdict::Obeyed, format!("all {read} samples read as erased memory; {held_content} held content before")),
    }
}
