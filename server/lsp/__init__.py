"""The protocol: pygls' server, what goes over the wire, what the client can do."""
