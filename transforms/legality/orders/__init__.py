"""Lists of places, such as an order, for which a tensor of one dimension may stand."""
