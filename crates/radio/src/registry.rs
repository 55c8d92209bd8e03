//! The list of bearer models: one line for each. Another crate adds its own with [`Models::with`].

use crate::model::{Entry, Model};
use crate::{endc, gsm, lte, ltem, nbiot, nr, plain, study, umts, wifi};

/// A list of models, by name.
#[derive(Clone, Debug)]
pub struct Models(Vec<Entry>);

impl Models {
    /// The models of airpath: one line each.
    pub fn shipped() -> Self {
        Self(vec![
            Entry::of::<plain::Wired>(),
            Entry::of::<plain::Recorded>(),
            Entry::of::<gsm::csd::Config>(),
            Entry::of::<gsm::gprs::Config>(),
            Entry::of::<study::dch_simple::Config>(),
            Entry::of::<umts::r99::Config>(),
            Entry::of::<study::hs_dsch_simple::Config>(),
            Entry::of::<umts::hsdpa::Config>(),
            Entry::of::<lte::Config>(),
            Entry::of::<ltem::Config>(),
            Entry::of::<nr::Config>(),
            Entry::of::<endc::Config>(),
            Entry::of::<nbiot::Config>(),
            Entry::of::<wifi::Config>(),
        ])
    }

    /// The same list and one model more. It replaces one of the same name.
    #[must_use]
    pub fn with<M: Model>(mut self) -> Self {
        self.0.retain(|entry| entry.name != M::NAME);
        self.0.push(Entry::of::<M>());
        self
    }

    /// The model called `name`.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.name == name)
    }

    /// The model that was called `name` before.
    pub fn get_former(&self, name: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.former_names.contains(&name))
    }

    /// All, in the order of the list.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }
}

impl Default for Models {
    fn default() -> Self {
        Self::shipped()
    }
}
