/// How the Roboscope sandbox behaves; may be changed while it runs, and counts from the next request on.
package struct RoboscopeRules: Sendable {
    /// Whether its calls exist; 404 where not.
    package var hasPresence: Bool
    package var hasLocks: Bool
    package var hasEvents: Bool
    /// Bytes of one request's body; 413 above.
    package var bodyLimit: Int
    /// Whether times are told with a fraction of a second.
    package var tellsFractions: Bool
    /// A PATCH of a session or marker without `version` is refused with 400; otherwise it counts without a check.
    package var needsVersion: Bool
    /// `meta` and `custom_props` of a PATCH are merged into what is there; otherwise they replace it.
    package var mergesObjects: Bool
    /// How long after its last sign of life somebody is present.
    package var presenceLifetime: Duration
    /// Markers in one list; the others are there, and not shown.
    package var longestList: Int

    package init(
        hasPresence: Bool = true, hasLocks: Bool = true, hasEvents: Bool = true, bodyLimit: Int = 2_097_152,
        tellsFractions: Bool = true, needsVersion: Bool = false, mergesObjects: Bool = false,
        presenceLifetime: Duration = .seconds(30), longestList: Int = .max
    ) {
        self.hasPresence = hasPresence
        self.hasLocks = hasLocks
        self.hasEvents = hasEvents
        self.bodyLimit = bodyLimit
        self.tellsFractions = tellsFractions
        self.needsVersion = needsVersion
        self.mergesObjects = mergesObjects
        self.presenceLifetime = presenceLifetime
        self.longestList = longestList
    }
}
