cp second.jpg ~/Drop
inlet status --watch
ls ~/Drop/.inlet/done
