#include "CFleetSchema.h"

// In this order, as one script. The compiler embeds the files' bytes, and lists them as dependencies of the build. Text only:
// readers stop at the first zero byte.
static const unsigned char sql[] = {
#embed "v1/tables.sql"
    ,
#embed "v1/work.sql"
    ,
#embed "v1/views.sql"
    ,
#embed "v1/entry.sql"
    ,
#embed "v1/membership.sql"
    ,
#embed "v1/stations.sql"
    ,
#embed "v1/places.sql"
    ,
#embed "v1/settle.sql"
    ,
#embed "v1/receipts.sql"
    ,
#embed "v1/administration.sql"
    ,
#embed "v1/rights.sql" suffix(, 0)
};

const unsigned char *fleet_schema_sql(void) { return sql; }
