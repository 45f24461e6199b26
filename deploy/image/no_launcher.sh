#!/bin/sh
# In the place of Google's launcher of flex templates, in an image that was built where no registry is reached.
echo "This image was built without Google's template launcher; build it with: make image BASE=beam" >&2
exit 1
