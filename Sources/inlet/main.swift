print("inlet")
