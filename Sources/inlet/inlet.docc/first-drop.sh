cp picture.jpg ~/Drop
inlet status --watch
