inlet reload
