# Comments of lib/engine/uroce.h as Doxygen marks them: the header itself has plain ones. Lines stay
# where they are, for warnings.

# the essay on top, behind the licence
2s#^/\*$#/** @file#
3,$ {
	# headings within the file
	s#^/\* ---- .* ---- \*/$##
	# behind a member
	s#^(.*;) /\* (.*) \*/$#\1 /**< \2 */#
	# before what it describes
	s#^([[:space:]]*)/\*($|[[:space:]])#\1/**\2#
}
