"""WITH attributes: their types, defaults and reference page, and the settings made of them."""
