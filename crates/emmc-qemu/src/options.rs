//! The plugin's arguments: `key=value` words.

use std::path::PathBuf;

use emmc_serve::pci::Identity;

/// Where a card comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The folder of a card.
    Folder(PathBuf),
    /// A new card of a shipped profile, in memory.
    Profile(String),
}

/// One card and its controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CardOptions {
    pub(crate) source: Source,
    pub(crate) controller: Identity,
    pub(crate) log: Option<PathBuf>,
    pub(crate) requests: Option<PathBuf>,
    pub(crate) summary: Option<PathBuf>,
}

/// All arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) cards: Vec<CardOptions>,
    /// An open descriptor for the first card's mailbox.
    pub(crate) host: Option<i32>,
}

/// An argument that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadArgument {
    #[error("{0:?}: expected key=value")]
    Form(String),
    #[error("{0}=: unknown; expected card, profile, controller, log, requests, summary or host")]
    Unknown(String),
    #[error("controller={0}: expected cqe, no-cqe or hs200")]
    Controller(String),
    #[error("host={0}: expected the number of an open descriptor")]
    Host(String),
    #[error("{0}=: comes before the card that it belongs to")]
    NoCard(String),
    #[error("no card: expected card=FOLDER or profile=NAME")]
    Nothing,
}

/// Parses the words in their order.
///
/// Errors: the first word that cannot be used.
pub(crate) fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Options, BadArgument> {
    let mut options = Options::default();
    let mut controller = Identity::Gl9763e;
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| BadArgument::Form(word.into()))?;
        let source = match key {
            "card" => Some(Source::Folder(value.into())),
            "profile" => Some(Source::Profile(value.into())),
            _ => None,
        };
        if let Some(source) = source {
            let card = CardOptions { source, controller, log: None, requests: None, summary: None };
            options.cards.push(card);
            continue;
        }
        let unattached = || BadArgument::NoCard(key.into());
        match key {
            "controller" => controller = identity(value).ok_or_else(|| BadArgument::Controller(value.into()))?,
            "host" => options.host = Some(value.parse().map_err(|_| BadArgument::Host(value.into()))?),
            "log" | "requests" | "summary" => {
                let card = options.cards.last_mut().ok_or_else(unattached)?;
                let place = match key {
                    "log" => &mut card.log,
                    "requests" => &mut card.requests,
                    _ => &mut card.summary,
                };
                *place = Some(value.into());
            }
            _ => return Err(BadArgument::Unknown(key.into())),
        }
    }
    if options.cards.is_empty() { Err(BadArgument::Nothing) } else { Ok(options) }
}

fn identity(name: &str) -> Option<Identity> {
    match name {
        "cqe" => Some(Identity::Gl9763e),
        "no-cqe" => Some(Identity::Gl9763eWithoutQueue),
        "hs200" => Some(Identity::Generic),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Result<Options, BadArgument> {
        parse(words.split_whitespace())
    }

    #[test]
    fn files_belong_to_the_card_before_them_and_controllers_to_those_after() {
        let options = parsed("profile=generic-8g controller=hs200 card=/c log=/l summary=/s host=3").unwrap();
        let [first, second] = &options.cards[..] else { panic!("{options:?}") };
        assert_eq!((first.controller, &first.log), (Identity::Gl9763e, &None));
        assert_eq!((second.controller, &second.source), (Identity::Generic, &Source::Folder("/c".into())));
        assert_eq!((&second.log, &second.summary), (&Some("/l".into()), &Some("/s".into())));
        assert_eq!(options.host, Some(3));
    }

    #[test]
    fn bad_arguments_are_named() {
        for (words, expected) in [
            ("", BadArgument::Nothing),
            ("card", BadArgument::Form("card".into())),
            ("log=x card=y", BadArgument::NoCard("log".into())),
            ("card=y color=red", BadArgument::Unknown("color".into())),
            ("card=y controller=x", BadArgument::Controller("x".into())),
            ("card=y host=-x", BadArgument::Host("-x".into())),
        ] {
            assert_eq!(parsed(words), Err(expected), "{words}");
        }
    }
}
