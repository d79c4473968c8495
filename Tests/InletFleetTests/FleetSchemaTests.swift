import Testing

@testable import InletFleet

struct FleetSchemaTests {
    @Test func `the schema has a version`() {
        #expect(FleetSchema.version == 1)
    }
}
