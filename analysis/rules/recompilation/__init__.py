"""GM7: what is compiled anew from call to call."""
