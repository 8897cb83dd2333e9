"""The page: what `kubefoundry` tells in a terminal, live in a browser, with the viewer's rights and no others."""
