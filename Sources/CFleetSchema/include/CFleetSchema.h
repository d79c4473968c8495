#pragma once

/// The SQL of the fleet's schema, from the time of the build: the files of `v1` as one script. UTF-8, with a zero at its end.
const unsigned char *_Nonnull fleet_schema_sql(void);
