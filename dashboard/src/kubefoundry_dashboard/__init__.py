"""The page: the output of `kubefoundry`, live in a browser. It uses the viewer's rights and no others."""
