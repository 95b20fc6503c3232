"""What answers an allowed request, by the name of its route.

`route_answers` takes each call to what answers its route. The other files are tables of answers,
one for each kind of route. Nothing here judges a request: `controller.http.api` has that done
before. `controller.http.parts` builds all of it.
"""
