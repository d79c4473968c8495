inlet check
