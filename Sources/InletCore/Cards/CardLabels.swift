/// What a person says of a card at an insertion.
package struct CardLabels: Sendable, Equatable, Codable {
    package var roll: String?
    package var camera: String?
    package var `operator`: String?
    package var note: String?

    package init(roll: String? = nil, camera: String? = nil, operator: String? = nil, note: String? = nil) {
        (self.roll, self.camera, self.operator, self.note) = (roll, camera, `operator`, note)
    }
}
