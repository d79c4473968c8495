import InletCore
import InletTestSupport
import SystemPackage
import Testing

struct RenamesTests {
    private func renamed(_ pairs: (FilePath, FilePath)...) -> Renames {
        var renames = Renames()
        for (cookie, (old, new)) in pairs.enumerated() {
            renames.leaves(old, cookie: UInt32(cookie + 1))
            renames.reaches(new, cookie: UInt32(cookie + 1))
        }
        return renames
    }

    @Test func `two halves with one cookie are a rename`() {
        let renames = renamed(("a", "x/b"))
        #expect(renames.origins(of: "x/b") == ["a"])
        #expect(renames.origins(of: "a").isEmpty && renames.origins(of: "x").isEmpty && !renames.isEmpty)
    }

    @Test func `halves of different renames do not match, nor does one without the other`() {
        var renames = Renames()
        renames.leaves("a", cookie: 1)
        renames.reaches("b", cookie: 2)
        #expect(renames.origins(of: "b").isEmpty)
        renames.reaches("c", cookie: 1)
        #expect(renames.origins(of: "c") == ["a"])
    }

    @Test func `a file below a renamed folder has its old path from it`() {
        let renames = renamed(("2026/old", "2026/new"))
        #expect(renames.origins(of: "2026/new/x/a.jpg") == ["2026/old/x/a.jpg"])
        #expect(renames.origins(of: "2026/newer/a.jpg").isEmpty)
    }

    @Test func `after several renames each name in between counts, the latest first`() {
        let renames = renamed(("a", "b"), ("b", "c"), ("folder", "other"), ("other/x", "y"))
        #expect(renames.origins(of: "c") == ["b", "a"] && renames.origins(of: "b").isEmpty)
        #expect(renames.origins(of: "y") == ["other/x", "folder/x"])
    }

    @Test func `a folder that is renamed twice tells of both names, and takes along what was renamed in it`() {
        var renames = renamed(("card/a", "card/b"))
        for (cookie, old, new) in [(11, "card", "monday"), (12, "monday", "tuesday")] as [(UInt32, FilePath, FilePath)]
        {
            renames.leaves(old, cookie: cookie)
            renames.reaches(new, cookie: cookie, isFolder: true)
        }
        #expect(renames.origins(of: "tuesday/x") == ["monday/x", "card/x"])
        #expect(renames.origins(of: "tuesday/b") == ["card/a", "monday/b", "card/b"])
        #expect(renames.origins(of: "monday/b").isEmpty && renames.origins(of: "card/b").isEmpty)
    }

    @Test func `no more names are remembered of one file than a journal can be asked for`() {
        var renames = Renames()
        for number in 0..<100 as Range<UInt32> {
            renames.leaves(FilePath("n\(number)"), cookie: number)
            renames.reaches(FilePath("n\(number + 1)"), cookie: number)
        }
        let names = renames.origins(of: "n100")
        #expect(names.count == 8 && names.first == "n99")
    }

    @Test func `a file that is renamed back may be known by the name in between, not by its own`() {
        let renames = renamed(("a", "b"), ("b", "a"))
        #expect(renames.origins(of: "a") == ["b"] && renames.origins(of: "b").isEmpty)
    }

    @Test func `what was moved to where nobody watched yet is known by its name, also below a folder`() {
        var renames = Renames()
        renames.leaves("card/A", cookie: 1)
        renames.leaves("note.txt", cookie: 2)
        #expect(!renames.isEmpty)
        #expect(renames.origins(of: "new/A/sub/x.jpg") == ["card/A/sub/x.jpg"])
        #expect(renames.origins(of: "new/note.txt") == ["note.txt"])
        #expect(renames.origins(of: "new/other.txt").isEmpty && renames.origins(of: "note.txt").isEmpty)
    }

    @Test func `what was asked about, or made anew, is forgotten`() {
        var renames = renamed(("a", "b"))
        renames.forget("b")
        #expect(renames.isEmpty)
    }

    @Test func `a file from outside under a name that was renamed to is not that file`() {
        var renames = renamed(("a", "b"))
        renames.reaches("b", cookie: 77)
        #expect(renames.origins(of: "b").isEmpty)
    }

    @Test func `memory is bounded, and the oldest goes first`() {
        var renames = Renames(capacity: 3)
        for number in 0..<200 as Range<UInt32> {
            renames.leaves(FilePath("lost\(number)"), cookie: 1000 + number)
            renames.leaves(FilePath("a\(number)"), cookie: number)
            renames.reaches(FilePath("b\(number)"), cookie: number)
        }
        #expect((0..<200).filter { !renames.origins(of: FilePath("b\($0)")).isEmpty } == [197, 198, 199])
        renames.reaches("late", cookie: 1000)
        #expect(renames.origins(of: "late").isEmpty)
    }

    @Test(arguments: 0..<30) func `random renames of files agree with a model that follows each`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var renames = Renames()
        // The names that each file had, latest first, by where it is.
        var model: [FilePath: [FilePath]] = [:]
        for number in 0..<8 { model[FilePath("f\(number)")] = [] }
        for cookie in 1...300 as ClosedRange<UInt32> {
            guard let old = model.keys.sorted(by: { $0.string < $1.string }).randomElement(using: &generator) else {
                break
            }
            let new = FilePath("f\(Int.random(in: 0..<20, using: &generator))")
            guard model[new] == nil else { continue }
            renames.leaves(old, cookie: cookie)
            renames.reaches(new, cookie: cookie)
            let names = [old] + (model.removeValue(forKey: old) ?? [])
            var kept: [FilePath] = []
            for name in names where name != new && !kept.contains(name) { kept.append(name) }
            model[new] = Array(kept.prefix(8))
        }
        for (path, names) in model { #expect(renames.origins(of: path) == names, "\(path)") }
    }
}
