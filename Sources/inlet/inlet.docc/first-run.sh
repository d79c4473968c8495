inlet run
