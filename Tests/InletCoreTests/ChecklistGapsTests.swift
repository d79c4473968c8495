import InletCore
import SystemPackage
import Testing

struct ChecklistGapsTests {
    @Test(
        arguments: [
            ("Photo one.JPG", nil, "images/1729446000000_Photo_one.JPG"),
            ("Photo one.JPG", "user123", "images/user123/1729446000000_Photo_one.JPG"),
            ("clip.mov", "user123", "videos/user123/1729446000000_clip.mov"),
            ("price list.pdf", nil, "documents/1729446000000_price_list.pdf"),
            ("spaceship.glb", "user123", "models/user123/1729446000000_spaceship.glb"),
            ("song.flac", nil, "audio/1729446000000_song.flac"),
            ("data.xyzzy", nil, "uploads/1729446000000_data.xyzzy"),
            ("Makefile", nil, "uploads/1729446000000_Makefile"),
        ] as [(FilePath, String?, String)])
    func `the default key is folder by kind, owner, time and clean name`(path: FilePath, owner: String?, key: String) {
        let table = RouteTable([Route(name: "all", owner: owner, to: ["r2"])])
        let identity = FileIdentity(size: 1, modified: 0, changed: 0, inode: 1, device: 1)
        let moment = WallTime(milliseconds: 1_729_446_000_000)
        let decision = table.plan(
            Arrival(root: "/drop", path: path, identity: identity), facts: Facts(), at: moment, zone: "UTC")
        guard case .plan(let plan) = decision else {
            Issue.record("no plan")
            return
        }
        #expect(plan.key == key)
    }
}
