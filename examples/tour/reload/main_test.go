package main

func Example() {
	main()
	// Output:
	// version 100 failed requests: 0 error: <nil>
}
