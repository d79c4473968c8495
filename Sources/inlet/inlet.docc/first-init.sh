inlet init --watch ~/Drop --to folder --path ~/Library --yes
