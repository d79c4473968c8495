/// What a client may ask of the Roboscope sandbox; counters and faults go by these.
package enum RoboscopeOperation: String, SandboxOperation {
    case health
    case events
    case listSpaces
    case createSpace
    case space
    case updateSpace
    case deleteSpace
    /// GET `/spaces/:id/reference-sets`.
    case referenceSets
    /// GET `/spaces/:id/laser-guide`.
    case laserGuide
    case listSessions
    case createSession
    case session
    case updateSession
    case deleteSession
    case listMarkers
    case createMarker
    /// POST `/markers/bulk`.
    case bulkMarkers
    case marker
    case updateMarker
    case deleteMarker
    /// GET of a marker's details, or POST of their calculation.
    case markerDetails
    /// GET `/presence/:session`.
    case presence
    /// POST `/presence/:session`.
    case enter
    /// DELETE `/presence/:session/:user`.
    case leave
    /// POST `/locks/work-sessions/:id`.
    case lock
    case extendLock
    case unlock
    case lockStatus
    /// A request that is none of these.
    case other
}

package typealias RoboscopeFault = OperationFault<RoboscopeOperation>
