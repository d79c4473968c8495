/// The schema of the fleet's database.
package enum FleetSchema {
    /// The newest version that this program knows.
    package static let version = 1
}
