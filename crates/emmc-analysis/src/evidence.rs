//! Evidence of a finding: the fields of EXT_CSD that it cites, separate from the text about them.
//!
//! A citation knows its bytes, so no code parses a number from a text. Bytes that no source read (U-Boot's words and
//! sizes imply their bits) are marked wherever they are cited.

use std::fmt;
use std::ops::Deref;

use emmc_port::CardData;
use emmc_regs::ext_csd::{Field, field_at};
use serde::Serialize;

/// The mark of a citation whose byte was not read.
pub(crate) const INFERRED: &str = " (inferred from U-Boot's text)";

/// A field of EXT_CSD, or some of it, as evidence: `ENH_SIZE_MULT[142:140]`,
/// `PARTITIONING_SUPPORT[160].ENH_ATTRIBUTE_EN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Citation {
    field: &'static Field,
    /// The cited byte, if it is not the whole field.
    byte: Option<u16>,
    bits: Option<&'static str>,
}

impl Citation {
    /// Named bits of a field.
    pub fn bits(field: &'static Field, name: &'static str) -> Self {
        debug_assert!(field.bits.iter().any(|bits| bits.name == name), "{field} has no bits {name}");
        Self { field, byte: None, bits: Some(name) }
    }

    /// One byte of the register; `None` past its end.
    pub fn byte(offset: u16) -> Option<Self> {
        let field = field_at(offset)?;
        Some(Self { field, byte: Some(offset).filter(|_| field.width > 1), bits: None })
    }

    /// The field.
    pub fn field(&self) -> &'static Field {
        self.field
    }

    /// The offsets of the cited bytes.
    pub fn bytes(&self) -> std::ops::Range<u16> {
        self.byte.map_or(self.field.bytes(), |byte| byte..byte + 1)
    }

    /// The same without its bits.
    pub fn whole(self) -> Self {
        Self { bits: None, ..self }
    }

    fn is_inferred(&self, card: &CardData) -> bool {
        card.ext_csd.is_some() && self.bytes().any(|byte| card.is_inferred(byte))
    }
}

impl From<&'static Field> for Citation {
    fn from(field: &'static Field) -> Self {
        Self { field, byte: None, bits: None }
    }
}

impl fmt::Display for Citation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.byte {
            Some(byte) => write!(f, "{}[{byte}]", self.field.name)?,
            None => self.field.fmt(f)?,
        }
        self.bits.map_or(Ok(()), |bits| write!(f, ".{bits}"))
    }
}

/// One piece of evidence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The fields that it cites; none if it comes from elsewhere.
    pub cited: Vec<Citation>,
    /// The text about them: ` = 0x00`; the whole text if no field is cited.
    pub text: String,
    /// Whether a cited byte was inferred, not read.
    pub is_inferred: bool,
}

impl Evidence {
    /// A citation and the text about it, including the separating blank or colon.
    pub fn of(cited: impl Into<Citation>, text: impl Into<String>) -> Self {
        Self { cited: vec![cited.into()], text: text.into(), is_inferred: false }
    }

    /// A field and the number in it.
    pub fn value(cited: impl Into<Citation>, value: impl fmt::LowerHex) -> Self {
        Self::of(cited, format!(" = {value:#04x}"))
    }

    /// Marks it if a cited byte was inferred.
    pub(crate) fn mark(&mut self, card: &CardData) {
        self.is_inferred = self.cited.iter().any(|cited| cited.is_inferred(card));
    }

    /// The citations alone: `CMDQ_SUPPORT[308], CMDQ_DEPTH[307]`.
    fn names(&self, whole: bool) -> String {
        let name = |cited: &Citation| if whole { cited.whole().to_string() } else { cited.to_string() };
        let mut names: Vec<String> = self.cited.iter().map(name).collect();
        names.dedup();
        names.join(", ")
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.is_inferred { INFERRED } else { "" };
        write!(f, "{}{}{mark}", self.names(false), self.text)
    }
}

impl From<String> for Evidence {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for Evidence {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&String> for Evidence {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

/// All evidence of one finding: its texts as `evidence` in JSON, the fields that they cite as `evidence_fields`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "PrintedList")]
pub struct EvidenceList(pub Vec<Evidence>);

impl EvidenceList {
    /// Each in its printed form.
    pub fn texts(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    /// Marks each that cites a byte that was inferred.
    pub(crate) fn mark(&mut self, card: &CardData) {
        self.0.iter_mut().for_each(|evidence| evidence.mark(card));
    }
}

impl Deref for EvidenceList {
    type Target = [Evidence];

    fn deref(&self) -> &[Evidence] {
        &self.0
    }
}

impl<T: Into<Evidence>> From<Vec<T>> for EvidenceList {
    fn from(list: Vec<T>) -> Self {
        Self(list.into_iter().map(Into::into).collect())
    }
}

/// Where a setting was read: as text `source` in JSON, the fields as `source_fields`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "PrintedSource")]
pub struct Source(pub Evidence);

impl Source {
    /// The registers without their bits, which are in the setting's name: `PARTITION_CONFIG[179]`.
    pub fn short(&self) -> String {
        Evidence { text: format!("{}{}", self.0.names(true), self.0.text), cited: Vec::new(), ..self.0 }.to_string()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let register = if self.0.cited.is_empty() { "" } else { "EXT_CSD " };
        write!(f, "{register}{}", self.0)
    }
}

impl From<Evidence> for Source {
    fn from(evidence: Evidence) -> Self {
        Self(evidence)
    }
}

impl From<&str> for Source {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Source {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&'static Field> for Source {
    fn from(field: &'static Field) -> Self {
        Self(Evidence::of(field, ""))
    }
}

impl<const N: usize> From<[Citation; N]> for Source {
    fn from(cited: [Citation; N]) -> Self {
        Self(Evidence { cited: cited.into(), ..Evidence::default() })
    }
}

impl<const N: usize> From<[&'static Field; N]> for Source {
    fn from(cited: [&'static Field; N]) -> Self {
        cited.map(Citation::from).into()
    }
}

/// A field of EXT_CSD that a text cites.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CitedField {
    /// Which of the texts cites it, from 0; absent where there is one text.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<usize>,
    /// The standard's name.
    field: &'static str,
    /// First byte in EXT_CSD.
    offset: u16,
    /// Unit: bytes.
    width_bytes: u16,
    /// The cited bits, if not the whole field.
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<&'static str>,
}

impl CitedField {
    fn new(evidence: Option<usize>, cited: &Citation) -> Self {
        let bytes = cited.bytes();
        let width_bytes = bytes.end - bytes.start;
        Self { evidence, field: cited.field.name, offset: bytes.start, width_bytes, bits: cited.bits }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PrintedList {
    /// Register values and figures as evidence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<String>,
    /// The fields of EXT_CSD that they cite.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence_fields: Vec<CitedField>,
}

impl From<EvidenceList> for PrintedList {
    fn from(list: EvidenceList) -> Self {
        let numbered = list.iter().enumerate();
        let fields = numbered.flat_map(|(at, one)| one.cited.iter().map(move |cited| CitedField::new(Some(at), cited)));
        Self { evidence_fields: fields.collect(), evidence: list.texts() }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PrintedSource {
    /// The register or file it was read from.
    source: String,
    /// The fields of EXT_CSD that it was read from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    source_fields: Vec<CitedField>,
}

impl From<Source> for PrintedSource {
    fn from(source: Source) -> Self {
        let source_fields = source.0.cited.iter().map(|cited| CitedField::new(None, cited)).collect();
        Self { source_fields, source: source.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use emmc_regs::ext_csd::{ExtCsd, reg};
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn evidence_prints_names_and_text_separately() {
        let printed = |evidence: Evidence| evidence.to_string();
        assert_eq!(printed(Evidence::value(reg::BKOPS_EN, 2)), "BKOPS_EN[163] = 0x02");
        assert_eq!(printed(Evidence::of(reg::ENH_SIZE_MULT, " holds 3")), "ENH_SIZE_MULT[142:140] holds 3");
        let bits = Citation::bits(reg::PARTITIONING_SUPPORT, "ENH_ATTRIBUTE_EN");
        assert_eq!(printed(Evidence::of(bits, " is 0")), "PARTITIONING_SUPPORT[160].ENH_ATTRIBUTE_EN is 0");
        assert_eq!(Citation::byte(141).unwrap().to_string(), "ENH_SIZE_MULT[141]");
        assert_eq!(
            (Citation::byte(155).unwrap(), Citation::byte(512)),
            (reg::PARTITION_SETTING_COMPLETED.into(), None)
        );
    }

    #[test]
    fn an_inferred_byte_is_marked_wherever_it_is_cited() {
        let mut card = CardData { inferred: vec![141, 155], ..CardData::default() };
        let mark = |card: &CardData, mut evidence: Evidence| {
            evidence.mark(card);
            evidence.is_inferred
        };
        assert!(!mark(&card, Evidence::of(reg::ENH_SIZE_MULT, "")), "without a register nothing is cited");
        card.ext_csd = Some(ExtCsd::unknown());
        assert!(mark(&card, Evidence::of(reg::ENH_SIZE_MULT, "")));
        assert!(!mark(&card, Evidence::of(Citation::byte(140).unwrap(), "")));
        assert!(!mark(&card, "PARTITION_SETTING_COMPLETED[155] is 1".into()), "a text is a text");
    }

    #[test]
    fn json_keeps_the_texts_and_adds_the_fields() {
        let list: EvidenceList = vec![Evidence::from("2 blocks"), Evidence::value(reg::SEC_COUNT, 0)].into();
        let fields = json!([{"evidence": 1, "field": "SEC_COUNT", "offset": 212, "width_bytes": 4}]);
        assert_eq!(
            to_value(list).unwrap(),
            json!({"evidence": ["2 blocks", "SEC_COUNT[215:212] = 0x00"], "evidence_fields": fields})
        );
        assert_eq!(to_value(EvidenceList::default()).unwrap(), json!({}));
        let source = Source::from([Citation::bits(reg::BKOPS_EN, "AUTO_EN"), reg::BKOPS_SUPPORT.into()]);
        assert_eq!(source.to_string(), "EXT_CSD BKOPS_EN[163].AUTO_EN, BKOPS_SUPPORT[502]");
        assert_eq!(source.short(), "BKOPS_EN[163], BKOPS_SUPPORT[502]");
        let inferred = Evidence { is_inferred: true, ..source.0.clone() };
        assert_eq!(Source(inferred).short(), format!("BKOPS_EN[163], BKOPS_SUPPORT[502]{INFERRED}"));
        assert_eq!(to_value(source).unwrap()["source_fields"][0]["bits"], "AUTO_EN");
        assert_eq!(to_value(Source::from("sysfs")).unwrap(), json!({"source": "sysfs"}));
    }
}
