//! Citations of registers that no source read: U-Boot's words and sizes imply their bits.

use emmc_port::CardData;

/// What follows a citation of a register that was not read.
pub(crate) const INFERRED: &str = " (inferred from U-Boot's text)";

/// Marks every text that cites such a register.
pub(crate) fn mark<'a>(card: &CardData, citations: impl Iterator<Item = &'a mut String>) {
    for citation in citations {
        if let Some(marked) = marked(card, citation) {
            *citation = marked;
        }
    }
}

/// The citation with its mark; `None` where all that it cites was read.
pub(crate) fn marked(card: &CardData, citation: &str) -> Option<String> {
    let cites = card.ext_csd.is_some() && cited(citation).any(|(from, to)| (from..=to).any(|at| card.is_inferred(at)));
    cites.then(|| format!("{citation}{INFERRED}"))
}

/// Bytes of EXT_CSD that a text cites: `NAME[155]`, `NAME[142:140]`.
fn cited(text: &str) -> impl Iterator<Item = (u16, u16)> {
    let byte = |number: &str| number.parse::<u16>().ok().filter(|offset| *offset < 512);
    text.match_indices('[').filter_map(move |(at, _)| {
        let (before, after) = (text.get(..at)?, text.get(at + 1..)?);
        let named = before.ends_with(|last: char| last.is_ascii_uppercase() || last.is_ascii_digit() || last == '_');
        let numbers = after.split(']').next().filter(|_| named)?;
        let (high, low) = numbers.split_once(':').unwrap_or((numbers, numbers));
        Some((byte(low)?, byte(high)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_cited_one_by_one_or_as_a_range() {
        let of = |text: &str| cited(text).collect::<Vec<_>>();
        assert_eq!(of("PARTITION_SETTING_COMPLETED[155] = 0x01"), [(155, 155)]);
        assert_eq!(of("EXT_CSD ENH_SIZE_MULT[142:140], A_1[3].BIT"), [(140, 142), (3, 3)]);
        for none in ["", "[155]", "NAME[", "NAME[x]", "NAME[600]", "NAME[1:2:3]", "ns [155]", "é[1"] {
            assert_eq!(of(none), [], "{none}");
        }
    }
}
